/* Lets fsync and fdatasync fail, for full-disk. A program is started with it by LD_PRELOAD.
 *
 * FSYNC_FAILS names a folder. A file in it with the name of a synced file has one byte for each call that is to fail. The kernel
 * reports an error once, and forgets the pages that it could not write: the next call succeeds although they are lost. So a call
 * that succeeds on a descriptor on which one has failed is noted as `retried`, in the file `notes`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char has_failed[DESCRIPTORS];

static int open_in_folder(const char *name, int flags) {
    const char *folder = getenv("FSYNC_FAILS");
    char place[4096];
    if (!folder)
        return -1;
    snprintf(place, sizeof place, "%s/%s", folder, name);
    return open(place, flags | O_CLOEXEC, 0600);
}

static void note(const char *what, const char *name) {
    int notes = open_in_folder("notes", O_WRONLY | O_CREAT | O_APPEND);
    if (notes >= 0) {
        dprintf(notes, "%s %s\n", what, name);
        syscall(SYS_close, notes);
    }
}

/* Takes one byte from the file of that name, if there is one. */
static int is_to_fail(const char *name) {
    int file = open_in_folder(name, O_WRONLY);
    struct stat found;
    int left = file >= 0 && fstat(file, &found) == 0 && found.st_size > 0;
    if (left)
        left = ftruncate(file, found.st_size - 1) == 0;
    if (file >= 0)
        syscall(SYS_close, file);
    return left;
}

static int sync_or_fail(int descriptor, long call) {
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    if (readlink(link, path, sizeof path - 1) < 0 || !strrchr(path, '/') || descriptor >= DESCRIPTORS)
        return (int)syscall(call, descriptor);
    const char *name = strrchr(path, '/') + 1;
    pthread_mutex_lock(&lock);
    int fails = is_to_fail(name);
    if (fails) {
        has_failed[descriptor] = 1;
        note("failed", name);
    }
    int retried = !fails && has_failed[descriptor];
    pthread_mutex_unlock(&lock);
    if (fails) {
        errno = EIO;
        return -1;
    }
    int result = (int)syscall(call, descriptor);
    if (retried && result == 0)
        note("retried", name);
    return result;
}

int fsync(int descriptor) { return sync_or_fail(descriptor, SYS_fsync); }

int fdatasync(int descriptor) { return sync_or_fail(descriptor, SYS_fdatasync); }

int close(int descriptor) {
    if (descriptor >= 0 && descriptor < DESCRIPTORS) {
        pthread_mutex_lock(&lock);
        has_failed[descriptor] = 0;
        pthread_mutex_unlock(&lock);
    }
    return (int)syscall(SYS_close, descriptor);
}
