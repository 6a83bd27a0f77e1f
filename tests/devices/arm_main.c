/* Runs a classifier on a Cortex-M core under QEMU: start-up code, output by semihosting, instructions by SysTick. */
#include <stdint.h>
#include "images.h" /* const uint8_t images[COUNT][INPUTS] */
extern uint32_t _estack, _sidata, _sdata, _edata, _sbss, _ebss;
int model_classify(const uint8_t *x);
int main(void);

static void semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void print(const char *label, uint32_t value)
{
    char digits[12];
    int i = 11;
    digits[i] = 0;
    do digits[--i] = (char)('0' + value % 10); while (value /= 10);
    semihosting(4, label);
    semihosting(4, digits + i);
    semihosting(4, "\n");
}

void reset(void)
{
    uint32_t *from = &_sidata, *to = &_sdata;
    while (to < &_edata) *to++ = *from++;
    for (to = &_sbss; to < &_ebss; to++) *to = 0;
    main();
    semihosting(0x18, (void *)0x20026);
    for (;;) {}
}

void fault(void)
{
    print("fault ", 1);
    semihosting(0x18, (void *)0x20024);
    for (;;) {}
}

__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    &_estack, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault};

#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)

static void start(void)
{
    SYST_RVR = 0xFFFFFF;
    SYST_CVR = 0;
    SYST_CSR = 5;
    while (!SYST_CVR) {}
}

static uint32_t ticks(void) { return 0xFFFFFF - SYST_CVR; }

static uint32_t turns(uint32_t n) /* two instructions each */
{
    __asm__ volatile(".syntax unified\n1: subs %0, #1\n bne 1b" : "+l"(n)::"cc");
    return n;
}

int main(void)
{
    uint32_t t, i, *p, *sp;
    start();
    t = ticks();
    turns(5000000);
    print("ticks_of_10M ", ticks() - t);
    __asm__ volatile("mov %0, sp" : "=r"(sp));
    for (p = &_ebss; p < sp - 8; p++) *p = 0xA5A5A5A5;
    for (i = 0; i < COUNT; i++) {
        int class;
        start();
        t = ticks();
        class = model_classify(images[i]);
        t = ticks() - t;
        print("class ", (uint32_t)class);
        if (i == 0) print("ticks ", t);
        if (i == 0) { /* before print uses the stack for the next time */
            for (p = &_ebss; p < sp - 8 && *p == 0xA5A5A5A5; p++) {}
            print("stack ", (uint32_t)((char *)sp - (char *)p));
        }
    }
    return 0;
}
