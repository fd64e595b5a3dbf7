// Lets the monotonic clock of a program follow its CPU time: a second passes for every CPU_RATE seconds of CPU. A run with a
// time limit then does the same on a busy machine as on an idle one. For `benches/own_graphs.py --cpu-clock`.
//
//     cc -O2 -shared -fPIC benches/cpu_clock.c -o cpu_clock.so
//     LD_PRELOAD=./cpu_clock.so CPU_RATE=1.8 ruleguider run DATA --minutes 3
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  static double rate = 0;
  if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
  if (rate == 0) {
    const char *given = getenv("CPU_RATE");
    rate = given ? atof(given) : 1.8;
  }
  struct timespec cpu;
  syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &cpu);
  // From a thousand on, so that a program may subtract from it.
  double seconds = 1000 + ((double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec) / rate;
  time->tv_sec = (time_t)seconds;
  time->tv_nsec = (long)((seconds - (double)time->tv_sec) * 1e9);
  return 0;
}
