/* Runs a classifier on an Arduino Uno (ATmega328P, 16 MHz) under simavr: cycles by timer 1, output by the serial port. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
#include <stdint.h>
#include "images.h"
int model_classify(const uint8_t *x);
static uint8_t image[INPUTS];
static volatile uint16_t overflows;
extern uint8_t __bss_end;
ISR(TIMER1_OVF_vect) { overflows++; }

static void put(char c)
{
    while (!(UCSR0A & (1 << UDRE0))) {}
    UDR0 = (uint8_t)c;
}

static void print(const char *label, uint32_t value)
{
    char digits[11];
    int8_t i = 10;
    digits[i] = 0;
    do digits[--i] = (char)('0' + value % 10); while (value /= 10);
    while (*label) put(*label++);
    while (digits[i]) put(digits[i++]);
    put('\n');
}

int main(void)
{
    uint8_t n, *p;
    uint16_t i, unused = 0;
    UCSR0B = 1 << TXEN0;
    TIMSK1 = 1 << TOIE1;
    sei();
    for (p = &__bss_end; p < (uint8_t *)SP - 4; p++) *p = 0xA5;
    for (n = 0; n < COUNT; n++) {
        int class;
        uint32_t cycles;
        for (i = 0; i < INPUTS; i++) image[i] = pgm_read_byte(&images[n][i]);
        overflows = 0;
        TCNT1 = 0;
        TCCR1A = 0;
        TCCR1B = 1;
        class = model_classify(image);
        cycles = TCNT1;
        cycles += (uint32_t)overflows << 16;
        TCCR1B = 0;
        print("class ", (uint32_t)class);
        if (n == 0) print("cycles ", cycles);
    }
    for (p = &__bss_end; *p == 0xA5; p++) unused++;
    print("unused ", unused);
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
