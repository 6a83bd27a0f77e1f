// Requests to the server: plain ones, and activity, of which only the latest matters.

export async function ask(path, options) {
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? response.statusText);
  return answer;
}

/** One request at a time. While it is pending only the latest of the next ones is kept, so strokes never queue up. */
export class Newest {
  constructor(send, receive, fail) {
    Object.assign(this, { send, receive, fail, waiting: null, busy: false });
  }

  async push(question) {
    this.waiting = question;
    if (this.busy) return;
    this.busy = true;
    while (this.waiting) {
      const newest = this.waiting;
      this.waiting = null;
      try {
        this.receive(await this.send(newest()));
      } catch (error) {
        this.fail(error);
      }
    }
    this.busy = false;
  }
}
