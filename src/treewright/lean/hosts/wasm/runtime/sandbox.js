'use strict';
/**
 * What Lean code may reach from inside the wasm module: the oleans, read-only, and nothing else.
 *
 * Lean's interpreter finds C symbols by name, so code in a session can call anything that the
 * module imports from JavaScript (`@[extern "emscripten_run_script"]` would evaluate JavaScript).
 * Hence an allow-list of imports: what is not on it fails when it is called.
 */
const EROFS = 69;

const ALLOWED = new Set([
  // memory, stack, C++ exceptions
  'memory', 'emscripten_resize_heap', 'emscripten_get_heap_max', 'emscripten_notify_memory_growth',
  'stackAlloc', 'stackRestore', 'stackSave', 'llvm_eh_typeid_for', '__cxa_begin_catch', '__cxa_end_catch', '__cxa_throw',
  '__cxa_rethrow', '__cxa_find_matching_catch_19', '__cxa_find_matching_catch_2', '__cxa_find_matching_catch_3',
  '__cxa_find_matching_catch_4', '__cxa_find_matching_catch_6', '__cxa_uncaught_exceptions',
  '__cxa_current_primary_exception', '__cxa_rethrow_primary_exception', '__resumeException',
  '_emscripten_throw_longjmp', '__assert_fail', '_abort_js', 'exit', 'proc_exit', '__call_sighandler',
  // clocks and chance
  'clock_res_get', 'clock_time_get', 'emscripten_get_now', 'emscripten_date_now', '_tzset_js', '_localtime_js',
  '_gmtime_js', '_mktime_js', '_timegm_js', 'random_get', 'emscripten_num_logical_cores', 'uv__hrtime',
  // the environment (scrubbed) and symbols of the module itself
  'environ_get', 'environ_sizes_get', '_emscripten_get_progname', '_dlsym_js', '_dlsym_catchup_js',
  '_emscripten_lookup_name', 'emscripten_asm_const_int',
  // Lean's tasks: threads that share the module and its restrictions
  '__pthread_create_js', '_emscripten_thread_exit_joinable', 'emscripten_unwind_to_js_event_loop', 'emscripten_set_timeout',
  '_emscripten_dlsync_threads', '_emscripten_dlsync_threads_async', '_emscripten_init_main_thread_js', '_emscripten_thread_set_strongref', '_emscripten_thread_mailbox_await',
  '_emscripten_receive_on_main_thread_js', '_emscripten_notify_mailbox_postmessage', 'emscripten_check_blocking_allowed',
  '_emscripten_runtime_keepalive_clear', 'emscripten_exit_with_live_runtime', '_emscripten_thread_cleanup',
  // libuv's loop is created and never polled
  'uv__platform_loop_init', 'uv__platform_loop_delete', 'uv__io_fork',
  // files; FS itself refuses every write (see lockFileSystem)
  '__syscall_openat', '__syscall_fcntl64', '__syscall_ioctl', '__syscall_faccessat', '__syscall_fstat64',
  '__syscall_stat64', '__syscall_newfstatat', '__syscall_lstat64', '__syscall_getcwd', '__syscall_getdents64',
  '__syscall_readlinkat', '__syscall_statfs64', '__syscall_fstatfs64', '__syscall_poll', '__syscall_chmod',
  '__syscall_fchmod', '__syscall_fchmodat2', '__syscall_fchown32', '__syscall_fchownat', '__syscall_ftruncate64',
  '__syscall_truncate64', '__syscall_mkdirat', '__syscall_mknodat', '__syscall_renameat', '__syscall_rmdir',
  '__syscall_symlinkat', '__syscall_unlinkat', '__syscall_utimensat', '__syscall_fallocate', '__syscall_fadvise64',
  '__syscall_fdatasync', '__syscall_chdir', '__syscall_fchdir', '__syscall_pipe', '__syscall_dup', '__syscall_dup3',
  'fd_close', 'fd_read', 'fd_pread', 'fd_write', 'fd_pwrite', 'fd_seek', 'fd_sync', 'fd_fdstat_get',
  '_mmap_js', '_munmap_js', '_msync_js',
]);

// Threads ask the main one to do things for them, to start another thread too: that is not imported by its name.
const OF_THREADS = ['__pthread_create_js', '_emscripten_receive_on_main_thread_js'];
let threads = 0;

/** How often Lean has started a thread, or done something for one. They share its memory and never end. */
const threadsStarted = () => threads;

/** Puts a refusal in the place of every import that is not allowed. */
function restrictImports(imports) {
  for (const name of OF_THREADS.filter((each) => each in imports)) {
    const original = imports[name];
    imports[name] = (...args) => {
      threads += 1;
      return original(...args);
    };
    imports[name].sig = original.sig;
  }
  for (const name of Object.keys(imports)) {
    if (ALLOWED.has(name) || name.startsWith('invoke_') || typeof imports[name] !== 'function') continue;
    const refuse = () => { throw new Error(`the sandbox has no ${name}`); };
    refuse.sig = imports[name].sig;
    imports[name] = refuse;
  }
}

/**
 * Makes the file system read-only: mounted files and the memory file system alike. Returns the two ways
 * in that are left, for us and not for Lean: `store` keeps bytes in memory, `collect` lets `body` write below
 * one directory in memory and gives what `take` makes of it.
 */
function lockFileSystem(FS) {
  let writable = null; // the directory that may be written to just now
  const refuse = () => { throw new FS.ErrnoError(EROFS); };
  const { mkdirTree, readFile, writeFile, readdir, unlink, rmdir } = FS;
  for (const operation of [
    'mknod', 'mkdir', 'mkdirTree', 'mkdev', 'symlink', 'rename', 'rmdir', 'unlink', 'chmod', 'lchmod', 'fchmod', 'chown', 'lchown',
    'fchown', 'truncate', 'ftruncate', 'utime', 'mount', 'unmount', 'create', 'writeFile', 'createDevice', 'createPath',
    'createFile', 'createDataFile', 'createLazyFile', 'createPreloadedFile', 'msync', 'doTruncate', 'doChmod', 'doSetAttr', 'doChown',
  ]) {
    const original = FS[operation];
    if (typeof original === 'function') FS[operation] = (...args) => (writable === null ? refuse() : original.apply(FS, args));
  }
  const O_ACCMODE = 3;
  const CREATES = 64 | 512 | 1024; // O_CREAT, O_TRUNC, O_APPEND
  const open = FS.open.bind(FS);
  FS.open = (path, flags, mode) => {
    const bits = typeof flags === 'string' ? (/[wa+]/.test(flags) ? 2 : 0) : flags;
    if (((bits & O_ACCMODE) !== 0 || (bits & CREATES) !== 0) && !inside(path)) refuse();
    return open(path, flags, mode);
  };
  const write = FS.write.bind(FS);
  FS.write = (stream, ...rest) => (stream.tty || inside(stream.path) ? write(stream, ...rest) : refuse());

  function inside(path) {
    return writable !== null && typeof path === 'string' && path.startsWith(`${writable}/`) && !path.includes('..');
  }

  function during(directory, work) {
    writable = directory;
    try {
      return work();
    } finally {
      writable = null;
    }
  }

  const parentOf = (path) => path.slice(0, path.lastIndexOf('/'));

  function store(path, bytes) {
    during(parentOf(path), () => {
      mkdirTree.call(FS, parentOf(path));
      writeFile.call(FS, path, bytes);
    });
  }

  function collect(directory, body, take) {
    during(directory, () => {
      mkdirTree.call(FS, directory);
      body();
    });
    const result = take((path) => readFile.call(FS, path));
    during(directory, () => readdir.call(FS, directory).filter((name) => !name.startsWith('.'))
      .forEach((name) => unlink.call(FS, `${directory}/${name}`)));
    return result;
  }

  // What there was before anything was stored or opened.
  let before = { streams: new Set(), roots: new Set(), directory: '/' };

  function remember() {
    before = { streams: new Set(FS.streams), roots: new Set(readdir.call(FS, '/')), directory: FS.cwd() };
  }

  /** Closes and removes what has come since. */
  function putBack() {
    FS.streams.filter((stream) => stream && !before.streams.has(stream)).forEach((stream) => FS.close(stream));
    const added = readdir.call(FS, '/').filter((name) => !before.roots.has(name));
    added.forEach((name) => removeTree(`/${name}`));
    FS.chdir(before.directory);
  }

  function removeTree(path) {
    if (!FS.isDir(FS.lookupPath(path).node.mode)) return unlink.call(FS, path);
    readdir.call(FS, path).filter((name) => name !== '.' && name !== '..').forEach((name) => removeTree(`${path}/${name}`));
    return rmdir.call(FS, path);
  }

  return { store, collect, remember, putBack };
}

module.exports = { restrictImports, threadsStarted, lockFileSystem, ALLOWED };
