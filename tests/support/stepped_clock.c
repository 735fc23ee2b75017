/* LD_PRELOAD: a wall clock that somebody sets. The offset in seconds is the number in $STEPPED_CLOCK, a file that is read
   at each call; CLOCK_BOOTTIME and CLOCK_MONOTONIC stay as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    const char *path = getenv("STEPPED_CLOCK");
    char text[32] = "0";
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        close(fd);
    }
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    now->tv_sec = t.tv_sec;
    now->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}
