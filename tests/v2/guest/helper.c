/* What busybox lacks, for the guest: containers, and memory and CPU to measure.
 *
 *   helper contain [-H] [-N] CGROUP PIDFILE CMD…  CMD as PID 1 of new namespaces, in that cgroup; -H: not a new cgroup
 *                                            one, -N: not a new network one. Its parent stays outside, so that an OOM kill of the group spares it.
 *   helper enter PID CMD…                    CMD in the namespaces of PID, but not in its cgroup
 *   helper nobody CMD…                       CMD as uid 65534 without capabilities
 *   helper hold MIB | grow MIB MS            touch memory, all at once or 1 MiB each MS, in sixteenths where there is
 *                                            a millisecond for each; then sleep for ever
 *   helper spin THREADS SECONDS              burn CPU
 *   helper poweroff CODE                     ends QEMU with (32 + CODE) * 2 + 1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void check(long result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "helper: %s: %s\n", what, strerror(errno));
    _exit(126);
}

static void put(const char *path, long number)
{
    FILE *file = fopen(path, "w");
    check(file ? 0 : -1, path);
    fprintf(file, "%ld\n", number);
    check(fclose(file), path);
}

static void run(char **command)
{
    execvp(command[0], command);
    check(-1, command[0]);
}

static int report(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int contain(char **arguments)
{
    int namespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP;
    for (; arguments[0][0] == '-'; arguments++)
        namespaces &= arguments[0][1] == 'H' ? ~CLONE_NEWCGROUP : ~CLONE_NEWNET;
    check(unshare(CLONE_NEWPID), "unshare");
    pid_t child = fork();
    check(child, "fork");
    if (child)
        put(arguments[1], child);
    else {
        char procs[4096];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(procs, sizeof procs, "%s/cgroup.procs", arguments[0]);
        put(procs, 0);
        check(unshare(namespaces), "unshare");
        check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
        run(arguments + 2);
    }
    return report(child);
}

static int enter(char **arguments)
{
    int target = syscall(SYS_pidfd_open, atoi(arguments[0]), 0);
    check(target, "pidfd_open");
    check(setns(target, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP), "setns");
    pid_t child = fork();
    check(child, "fork");
    if (!child)
        run(arguments + 1);
    return report(child);
}

static void nobody(char **command)
{
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        check(prctl(PR_CAPBSET_DROP, capability), "bounding set");
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    check(setgroups(0, NULL), "setgroups");
    check(setresgid(65534, 65534, 65534), "setresgid");
    check(setresuid(65534, 65534, 65534), "setresuid");
    run(command);
}

static void touch(long mebibytes, long pause_ms)
{
    for (long i = 0; i < mebibytes; i++) {
        void *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(block == MAP_FAILED ? -1 : 0, "mmap");
        long steps = pause_ms >= 16 ? 16 : 1;
        for (long step = 0; step < steps; step++) {
            memset((char *)block + step * ((1 << 20) / steps), 1, (1 << 20) / steps);
            usleep(pause_ms * 1000 / steps);
        }
    }
    puts("touched");
    fflush(stdout);
    for (;;)
        pause();
}

static void *burn(void *unused)
{
    for (volatile unsigned long i = 0;; i++)
        ;
    return unused;
}

static void spin(int threads, int seconds)
{
    pthread_t thread;
    for (int i = 0; i < threads; i++)
        check(-pthread_create(&thread, NULL, burn, NULL), "thread");
    sleep(seconds);
}

int main(int count, char **arguments)
{
    const char *what = count > 2 ? arguments[1] : "";
    if (!strcmp(what, "contain") && count > 4)
        return contain(arguments + 2);
    if (!strcmp(what, "enter") && count > 3)
        return enter(arguments + 2);
    if (!strcmp(what, "nobody"))
        nobody(arguments + 2);
    if (!strcmp(what, "hold"))
        touch(atol(arguments[2]), 0);
    if (!strcmp(what, "grow") && count > 3)
        touch(atol(arguments[2]), atol(arguments[3]));
    if (!strcmp(what, "spin") && count > 3) {
        spin(atoi(arguments[2]), atoi(arguments[3]));
        return 0;
    }
    if (!strcmp(what, "poweroff")) {
        check(iopl(3), "iopl");
        outb(32 + (atoi(arguments[2]) & 31), 0xf4);
    }
    return 64;
}
