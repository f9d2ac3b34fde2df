/* Traces the calls of a process that change the files of one directory, and makes chosen calls fail. Loaded with
   LD_PRELOAD.

   Every call that changes a file below the watched directory, or makes a change durable, is written as one record to a
   trace file (read by `trace.py`), with its payload, whether it succeeded or not. One chosen call can be made to fail.

   The file of a descriptor is read from the kernel (/proc/self/fd) at every call, so that duplicated, inherited or
   renamed descriptors need no bookkeeping. Deleted files are ignored, since no power cut restores them.

   The calls are made by syscall(2), so that this library never calls its own wrappers. Writes through mmap, stdio or
   io_uring are not traced; `test_shim.py` compares a replay of the trace with the directory itself. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ != 8
#error "offsets are passed to syscall(2) as one 64-bit argument"
#endif

/* The same numbers as in trace.py. */
enum operation { CREATE, MKDIR, WRITE, TRUNCATE, EXTEND, SYNC, RENAME, UNLINK, RMDIR, LINK, MARK, READ, UNKNOWN };
enum manner { ONCE, SHORT, SHORT_THEN_ONCE, ONWARD };

struct record {
    uint32_t operation;
    int32_t error;      /* errno, or 0 */
    uint32_t injected;  /* 1: the failure or the short write was injected */
    uint32_t path_bytes;
    uint32_t other_bytes;
    uint32_t unused;
    uint64_t number;    /* offset of a write, size of a truncation */
    uint64_t payload_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char watched[PATH_MAX];
static size_t watched_length; /* 0: no directory is watched */
static int trace_file = -1;

static struct {
    uint32_t operations; /* one bit per kind of operation that may fail; 0: none */
    long nth, seen;
    int error;
    enum manner manner;
} fault;

/* ---- files and paths ---- */

static int below_watched(const char *path) {
    return strncmp(path, watched, watched_length) == 0 && (path[watched_length] == '/' || path[watched_length] == 0);
}

static int tracked_file(int file, char *path) {
    if (watched_length == 0 || file < 0) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int saved = errno;
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    errno = saved;
    if (length <= 0) return 0;
    path[length] = 0;
    static const char deleted[] = " (deleted)";
    size_t tail = sizeof deleted - 1;
    if ((size_t)length > tail && strcmp(path + length - tail, deleted) == 0) return 0;
    return below_watched(path);
}

/* Resolves symbolic links except in the last component, which may not exist yet. */
static int tracked_path(int folder, const char *path, char *resolved) {
    if (watched_length == 0 || path == NULL || *path == 0) return 0;
    int saved = errno, found = 0;
    char base[PATH_MAX] = "", whole[2 * PATH_MAX + 2], parent[PATH_MAX];
    if (path[0] != '/' && folder != AT_FDCWD) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        long length = syscall(SYS_readlinkat, AT_FDCWD, link, base, PATH_MAX - 1);
        base[length > 0 ? length : 0] = 0;
    }
    snprintf(whole, sizeof whole, "%s%s%s", base, *base ? "/" : "", path);
    size_t end = strlen(whole);
    while (end > 1 && whole[end - 1] == '/') whole[--end] = 0;
    char *slash = strrchr(whole, '/');
    const char *name = slash ? slash + 1 : whole;
    if (slash) *slash = 0;
    if (*name && realpath(slash ? (*whole ? whole : "/") : ".", parent) != NULL &&
        (size_t)snprintf(resolved, PATH_MAX, "%s/%s", strcmp(parent, "/") ? parent : "", name) < PATH_MAX)
        found = below_watched(resolved);
    errno = saved;
    return found;
}

/* ---- trace ---- */

static void put(const void *bytes, size_t count) {
    while (count > 0) {
        long done = syscall(SYS_write, trace_file, bytes, count);
        if (done <= 0) abort(); /* an incomplete trace proves nothing */
        bytes = (const char *)bytes + done;
        count -= (size_t)done;
    }
}

static void trace_call(enum operation operation, int error, int injected, const char *path, const char *other,
                 uint64_t number, const void *payload, size_t payload_bytes) {
    if (trace_file < 0) return;
    int saved = errno;
    size_t path_bytes = strlen(path), other_bytes = other ? strlen(other) : 0;
    struct record head = {operation, error, (uint32_t)injected, (uint32_t)path_bytes, (uint32_t)other_bytes, 0,
                          number, payload_bytes};
    put(&head, sizeof head);
    put(path, path_bytes);
    put(other, other_bytes);
    put(payload, payload_bytes);
    errno = saved;
}

/* ---- faults ---- */

/* Returns 0 to pass, an errno to fail with it, -1 to write only half. */
static int injected_error(enum operation operation, size_t bytes) {
    if (!(fault.operations >> operation & 1)) return 0;
    long seen = ++fault.seen;
    if (seen < fault.nth) return 0;
    switch (fault.manner) {
    case ONWARD: return fault.error;
    case ONCE: return seen == fault.nth ? fault.error : 0;
    case SHORT: return seen == fault.nth && bytes > 1 ? -1 : 0;
    case SHORT_THEN_ONCE:
        if (seen == fault.nth) return bytes > 1 ? -1 : fault.error;
        return seen == fault.nth + 1 ? fault.error : 0;
    }
    return 0;
}

/* ---- interface for Python (ctypes) ---- */

/* Watches a directory from now on, including its open files. */
int shim_watch(const char *folder, const char *trace) {
    pthread_mutex_lock(&lock);
    watched_length = 0;
    if (trace_file >= 0) syscall(SYS_close, trace_file);
    trace_file = -1;
    memset(&fault, 0, sizeof fault);
    int found = realpath(folder, watched) != NULL;
    if (found) trace_file = (int)syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (trace_file >= 0) watched_length = strlen(watched);
    pthread_mutex_unlock(&lock);
    return trace_file >= 0 ? 0 : -1;
}

void shim_mark(const char *text) {
    pthread_mutex_lock(&lock);
    trace_call(MARK, 0, 0, text, NULL, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
}

void shim_fail(uint32_t operations, long nth, int error, int manner) {
    pthread_mutex_lock(&lock);
    fault.operations = operations;
    fault.nth = nth;
    fault.seen = 0;
    fault.error = error;
    fault.manner = (enum manner)manner;
    pthread_mutex_unlock(&lock);
}

/* Returns the number of counted calls since shim_fail. */
long shim_seen(void) { return fault.seen; }

/* ---- calls on paths ---- */

#define REFUSE(operation, path, other, number)                             \
    int error_ = injected_error(operation, 0);                                    \
    if (error_ > 0) {                                                      \
        trace_call(operation, error_, 1, path, other, number, NULL, 0);          \
        pthread_mutex_unlock(&lock);                                       \
        errno = error_;                                                    \
        return -1;                                                         \
    }

static long finish(long result, enum operation operation, const char *path, const char *other, uint64_t number) {
    trace_call(operation, result < 0 ? errno : 0, 0, path, other, number, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

static int open_file(int folder, const char *path, int flags, mode_t mode) {
    char where[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !tracked_path(folder, path, where))
        return (int)syscall(SYS_openat, folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat status;
    int there = lstat(where, &status) == 0;
    if (there ? !(flags & O_TRUNC) : !(flags & O_CREAT)) { /* neither created nor truncated */
        pthread_mutex_unlock(&lock);
        return (int)syscall(SYS_openat, folder, path, flags, mode);
    }
    enum operation operation = there ? TRUNCATE : CREATE;
    REFUSE(operation, where, NULL, 0)
    return (int)finish(syscall(SYS_openat, folder, path, flags, mode), operation, where, NULL, 0);
}

#define MODE                                        \
    mode_t mode = 0;                                \
    if (flags & (O_CREAT | O_TMPFILE)) {            \
        va_list more;                               \
        va_start(more, flags);                      \
        mode = va_arg(more, mode_t);                \
        va_end(more);                               \
    }

int open(const char *path, int flags, ...) {
    MODE
    return open_file(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE
    return open_file(folder, path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));
int __open_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_file(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return open_file(folder, path, flags, 0); }
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char where[PATH_MAX];
    if (!tracked_path(folder, path, where)) return (int)syscall(SYS_mkdirat, folder, path, mode);
    pthread_mutex_lock(&lock);
    REFUSE(MKDIR, where, NULL, 0)
    return (int)finish(syscall(SYS_mkdirat, folder, path, mode), MKDIR, where, NULL, 0);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int folder, const char *path, int flags) {
    char where[PATH_MAX];
    if (!tracked_path(folder, path, where)) return (int)syscall(SYS_unlinkat, folder, path, flags);
    enum operation operation = flags & AT_REMOVEDIR ? RMDIR : UNLINK;
    pthread_mutex_lock(&lock);
    REFUSE(operation, where, NULL, 0)
    return (int)finish(syscall(SYS_unlinkat, folder, path, flags), operation, where, NULL, 0);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int result = unlink(path);
    return result < 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : result;
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    char source[PATH_MAX] = "", target[PATH_MAX] = "";
    int tracked = tracked_path(from, old, source), also = tracked_path(to, new, target);
    if (!tracked && !also) return (int)syscall(SYS_renameat2, from, old, to, new, flags);
    enum operation operation = flags & RENAME_EXCHANGE ? UNKNOWN : RENAME;
    pthread_mutex_lock(&lock);
    REFUSE(operation, source, target, 0)
    return (int)finish(syscall(SYS_renameat2, from, old, to, new, flags), operation, source, target, 0);
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    char source[PATH_MAX] = "", target[PATH_MAX] = "";
    tracked_path(from, old, source);
    if (!tracked_path(to, new, target)) return (int)syscall(SYS_linkat, from, old, to, new, flags);
    pthread_mutex_lock(&lock);
    REFUSE(LINK, source, target, 0)
    return (int)finish(syscall(SYS_linkat, from, old, to, new, flags), LINK, source, target, 0);
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int truncate(const char *path, off_t size) {
    char where[PATH_MAX];
    if (!tracked_path(AT_FDCWD, path, where)) return (int)syscall(SYS_truncate, path, size);
    pthread_mutex_lock(&lock);
    REFUSE(TRUNCATE, where, NULL, (uint64_t)size)
    return (int)finish(syscall(SYS_truncate, path, size), TRUNCATE, where, NULL, (uint64_t)size);
}
int truncate64(const char *path, off_t size) __attribute__((alias("truncate")));

/* ---- calls on open files ---- */

int ftruncate(int file, off_t size) {
    char where[PATH_MAX];
    if (!tracked_file(file, where)) return (int)syscall(SYS_ftruncate, file, size);
    pthread_mutex_lock(&lock);
    REFUSE(TRUNCATE, where, NULL, (uint64_t)size)
    return (int)finish(syscall(SYS_ftruncate, file, size), TRUNCATE, where, NULL, (uint64_t)size);
}
int ftruncate64(int file, off_t size) __attribute__((alias("ftruncate")));

/* Allocates space, and extends the file if it is shorter; any other mode is not modelled. */
int fallocate(int file, int mode, off_t offset, off_t length) {
    char where[PATH_MAX];
    if (!tracked_file(file, where)) return (int)syscall(SYS_fallocate, file, mode, offset, length);
    enum operation operation = mode == 0 ? EXTEND : UNKNOWN;
    uint64_t size = (uint64_t)(offset + length);
    pthread_mutex_lock(&lock);
    REFUSE(operation, where, NULL, size)
    return (int)finish(syscall(SYS_fallocate, file, mode, offset, length), operation, where, NULL, size);
}
int fallocate64(int file, int mode, off_t offset, off_t length) __attribute__((alias("fallocate")));
int posix_fallocate(int file, off_t offset, off_t length) {
    int saved = errno, result = fallocate(file, 0, offset, length) == 0 ? 0 : errno;
    errno = saved;
    return result;
}
int posix_fallocate64(int file, off_t offset, off_t length) __attribute__((alias("posix_fallocate")));

static int sync_file(int file, long call) {
    char where[PATH_MAX];
    if (!tracked_file(file, where)) return (int)syscall(call, file);
    pthread_mutex_lock(&lock);
    REFUSE(SYNC, where, NULL, 0)
    return (int)finish(syscall(call, file), SYNC, where, NULL, 0);
}
int fsync(int file) { return sync_file(file, SYS_fsync); }
int fdatasync(int file) { return sync_file(file, SYS_fdatasync); }

/* It promises no durability (no metadata, no flush of the disk's cache), so a replay does not count it as a sync. */
int sync_file_range(int file, off_t offset, off_t length, unsigned flags) {
    char where[PATH_MAX];
    if (!tracked_file(file, where)) return (int)syscall(SYS_sync_file_range, file, offset, length, flags);
    pthread_mutex_lock(&lock);
    REFUSE(SYNC, where, NULL, 0)
    pthread_mutex_unlock(&lock);
    return (int)syscall(SYS_sync_file_range, file, offset, length, flags);
}

/* Reads back the bytes that were written. */
static void note_written(int file, const char *path, int injected, off_t offset, size_t count) {
    char link[64], *bytes = malloc(count ? count : 1);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int reader = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    size_t done = 0;
    while (bytes && reader >= 0 && done < count) {
        long part = syscall(SYS_pread64, reader, bytes + done, count - done, offset + (off_t)done);
        if (part <= 0) break;
        done += (size_t)part;
    }
    if (done < count) abort();
    syscall(SYS_close, reader);
    trace_call(WRITE, 0, injected, path, NULL, (uint64_t)offset, bytes, count);
    free(bytes);
}

static ssize_t write_bytes(int file, const void *bytes, size_t count, off_t offset) {
    char where[PATH_MAX];
    int decision = 0, tracked = tracked_file(file, where);
    if (tracked) pthread_mutex_lock(&lock), decision = injected_error(WRITE, count);
    size_t asked = decision < 0 ? count / 2 : count;
    ssize_t done = -1;
    if (decision > 0) errno = decision;
    else if (offset < 0) done = syscall(SYS_write, file, bytes, asked);
    else done = syscall(SYS_pwrite64, file, bytes, asked, offset);
    if (!tracked) return done;
    off_t start = offset >= 0 ? offset : lseek(file, 0, SEEK_CUR) - (done > 0 ? done : 0); /* also with O_APPEND */
    trace_call(WRITE, done < 0 ? errno : 0, decision != 0, where, NULL, (uint64_t)start, bytes,
               done < 0 ? 0 : (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}
ssize_t write(int file, const void *bytes, size_t count) { return write_bytes(file, bytes, count, -1); }
ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return write_bytes(file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) __attribute__((alias("pwrite")));

/* Several buffers are one write, so that a fault can fall between them. */
static ssize_t write_pieces(int file, const struct iovec *pieces, int count, off_t offset) {
    char where[PATH_MAX];
    if (!tracked_file(file, where)) {
        if (offset < 0) return syscall(SYS_writev, file, pieces, count);
        return syscall(SYS_pwritev, file, pieces, count, offset, 0);
    }
    size_t total = 0;
    for (int piece = 0; piece < count; piece++) total += pieces[piece].iov_len;
    char *bytes = malloc(total ? total : 1), *end = bytes;
    if (!bytes) abort();
    for (int piece = 0; piece < count; piece++) end = mempcpy(end, pieces[piece].iov_base, pieces[piece].iov_len);
    ssize_t done = write_bytes(file, bytes, total, offset);
    free(bytes);
    return done;
}
ssize_t writev(int file, const struct iovec *pieces, int count) { return write_pieces(file, pieces, count, -1); }
ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t offset) {
    return write_pieces(file, pieces, count, offset);
}
ssize_t pwritev64(int file, const struct iovec *pieces, int count, off_t offset) __attribute__((alias("pwritev")));

/* A copy within the kernel; `range`: by copy_file_range rather than by sendfile. */
static ssize_t copy_bytes(int range, int in, off_t *in_offset, int out, off_t *out_offset, size_t count, int flags) {
    char where[PATH_MAX];
    int decision = 0, tracked = tracked_file(out, where);
    struct stat source;
    size_t known = fstat(in, &source) == 0 && (size_t)source.st_size < count ? (size_t)source.st_size : count;
    if (tracked) pthread_mutex_lock(&lock), decision = injected_error(WRITE, known);
    if (decision < 0) count = known / 2;
    ssize_t done = -1;
    if (decision > 0) errno = decision;
    else if (range) done = syscall(SYS_copy_file_range, in, in_offset, out, out_offset, count, flags);
    else done = syscall(SYS_sendfile, out, in, in_offset, count);
    if (!tracked) return done;
    if (done < 0) trace_call(WRITE, errno, decision != 0, where, NULL, 0, NULL, 0);
    off_t end = out_offset ? *out_offset : lseek(out, 0, SEEK_CUR);
    if (done >= 0) note_written(out, where, decision != 0, end - done, (size_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}
ssize_t copy_file_range(int in, off_t *in_offset, int out, off_t *out_offset, size_t count, unsigned flags) {
    return copy_bytes(1, in, in_offset, out, out_offset, count, (int)flags);
}
ssize_t sendfile(int out, int in, off_t *in_offset, size_t count) {
    return copy_bytes(0, in, in_offset, out, NULL, count, 0);
}
ssize_t sendfile64(int out, int in, off_t *in_offset, size_t count) __attribute__((alias("sendfile")));

/* A read changes nothing and is not in the trace, unless it is made to fail. */
static ssize_t read_bytes(int file, void *bytes, size_t count, off_t offset) {
    char where[PATH_MAX];
    if (fault.operations >> READ & 1 && tracked_file(file, where)) {
        pthread_mutex_lock(&lock);
        REFUSE(READ, where, NULL, (uint64_t)(offset < 0 ? 0 : offset))
        pthread_mutex_unlock(&lock);
    }
    return offset < 0 ? syscall(SYS_read, file, bytes, count) : syscall(SYS_pread64, file, bytes, count, offset);
}
ssize_t read(int file, void *bytes, size_t count) { return read_bytes(file, bytes, count, -1); }
ssize_t pread(int file, void *bytes, size_t count, off_t offset) { return read_bytes(file, bytes, count, offset); }
ssize_t pread64(int file, void *bytes, size_t count, off_t offset) __attribute__((alias("pread")));
