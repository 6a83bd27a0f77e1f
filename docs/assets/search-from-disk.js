// Browsers start no web worker on pages opened from disk, and the search needs one: here it runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.waiting = []
      frame.addEventListener("load", () => {
        const inside = frame.contentWindow
        inside.postMessage = data => this.answer(data)
        const script = inside.document.createElement("script")
        script.src = new URL(url, location.href).href
        script.onload = () => {
          this.inside = inside
          this.waiting.forEach(data => this.postMessage(data))
        }
        inside.document.body.append(script)
      }, { once: true })
      frame.srcdoc = "<!doctype html><body></body>"
      document.body.append(frame)
    }

    answer(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new MessageEvent("message", { data }))
      else this.waiting.push(data)
    }
  }
}
