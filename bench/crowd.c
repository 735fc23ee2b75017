/* A process with COUNT sleeping children, until SIGTERM: as cheap as processes come.
 *
 *   crowd COUNT
 *
 * Prints how many it got, and why no more. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0, made = 0, number;
    pid_t *children = calloc(count + 1, sizeof *children);
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    for (; made < count; made++) {
        children[made] = fork();
        if (children[made] < 0) break;
        if (children[made] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) pause();
        }
    }
    printf("%d %s\n", made, made < count ? strerror(errno) : "");
    fflush(stdout);
    sigwait(&end, &number);
    for (int i = 0; i < made; i++) kill(children[i], SIGKILL);
    while (wait(NULL) > 0) {
    }
    return 0;
}
