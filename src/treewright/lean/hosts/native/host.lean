/-
The native host: the protocol of docs/lean-protocol.md, served by the toolchain of a project.

It is one file, so that nothing has to be installed: treewright compiles it with the project's own
Lean and starts it. JSON lines come in on stdin; one reply for each goes out on a descriptor of its
own, in order. Everything in Lean is a value, so environments and proof states can be continued at
any time, any number of times. What differs between Lean versions is in the first section, and
nowhere else.
-/
import Lean.Compiler.ExternAttr
import Lean.Compiler.ImplementedByAttr
import Lean.Compiler.InitAttr
import Lean.Data.Json
import Lean.Elab.Command
import Lean.Elab.Import
import Lean.Elab.SyntheticMVars
import Lean.Elab.Tactic.Basic
import Lean.Parser.Module
import Lean.PrettyPrinter
import Lean.Util.FoldConsts
import Std.Data.HashMap.Basic
import Std.Data.HashSet.Basic

open Lean Elab

namespace Treewright

/-! ## Lean versions: 4.14 and newer -/

/-- The first term if this Lean has the constant, else the second, which is then not elaborated. -/
macro "if_known% " n:ident " then " a:term " else " b:term : term => do
  if (← Macro.hasDecl n.getId) then return a else return b

/-- What the kernel works on; before 4.18 it was the environment itself. -/
abbrev KernelEnv : Type :=
  if_known% Lean.Kernel.Environment then Lean.Kernel.Environment else Lean.Environment

abbrev KernelError : Type :=
  if_known% Lean.Kernel.Exception then Lean.Kernel.Exception else Lean.KernelException

def kernelOf (env : Environment) : KernelEnv :=
  if_known% Lean.Environment.toKernelEnv then env.toKernelEnv else env

def environmentOf (env : KernelEnv) : Environment :=
  if_known% Lean.Environment.ofKernelEnv then Lean.Environment.ofKernelEnv env else env

def kernelFind? (env : KernelEnv) (name : Name) : Option ConstantInfo :=
  if_known% Lean.Kernel.Environment.find? then Lean.Kernel.Environment.find? env name else env.find? name

def kernelAdd (env : KernelEnv) (declaration : Declaration) (token : IO.CancelToken) : Except KernelError KernelEnv :=
  if_known% Lean.Kernel.Environment.addDeclCore
  then by first -- since 4.33 with a second limit; none is set
    | exact Lean.Kernel.Environment.addDeclCore env 0 0 declaration (some token)
    | exact Lean.Kernel.Environment.addDeclCore env 0 declaration (some token)
  else Lean.Environment.addDeclCore env 0 declaration (some token)

/-- Everything in one thread: a step is over when its reply is there. -/
def plainOptions : Options :=
  if_known% Lean.Elab.async then Lean.Elab.async.set {} false else {}

def importAll (imports : Array Import) : IO Environment :=
  if_known% Lean.ImportArtifacts
  then importModules imports plainOptions (loadExts := true)
  else if_known% Lean.finalizePersistentExtensions
    then importModules imports plainOptions (loadExts := true)
    else importModules imports plainOptions

/-- The constants of modules. Their extensions are not loaded where this Lean can do without. -/
def importBare (imports : Array Import) : IO Environment := importModules imports plainOptions

def commandContext (input : Parser.InputContext) (token : IO.CancelToken) : Command.Context :=
  if_known% Lean.Elab.Command.Context.tacticCache?
  then { fileName := input.fileName, fileMap := input.fileMap, tacticCache? := none, snap? := none, cancelTk? := some token }
  else { fileName := input.fileName, fileMap := input.fileMap, snap? := none, cancelTk? := some token }

def kindOf (_message : Message) : Name :=
  if_known% Lean.Message.kind then _message.kind else .anonymous

def textOf (characters : List Char) : String :=
  if_known% String.ofList then String.ofList characters else String.mk characters

/-- The name that a module system hides behind a prefix, as its author wrote it. -/
def userName (name : Name) : Name := (privateToUserName? name).getD name

/-- Constants with which the kernel computes by name. An original that imports less could be given others. -/
def kernelNames : List Name := [
  ``Nat, ``Nat.zero, ``Nat.succ, ``Nat.rec, ``Nat.add, ``Nat.sub, ``Nat.mul, ``Nat.div, ``Nat.mod, ``Nat.gcd, ``Nat.beq, ``Nat.ble,
  ``Nat.land, ``Nat.lor, ``Nat.xor, ``Nat.shiftLeft, ``Nat.shiftRight, ``Nat.pow, ``Nat.log2, ``Bool, ``Bool.true, ``Bool.false,
  ``String, ``Char, ``Char.ofNat, ``List, ``List.nil, ``List.cons, ``Eq, ``Eq.refl, ``Quot, ``Quot.mk, ``Quot.lift, ``Quot.ind,
  ``sorryAx, if_known% String.ofList then ``String.ofList else ``String.mk, if_known% eagerReduce then ``eagerReduce else ``id] ++
  if_known% Lean.reduceBool then [``Lean.reduceBool, ``Lean.reduceNat, ``Lean.ofReduceBool, ``Lean.ofReduceNat] else []

/-- With these the kernel runs compiled code, or believes what code has computed. -/
def runsCode : List Name := [`Lean.reduceBool, `Lean.reduceNat, `Lean.ofReduceBool, `Lean.ofReduceNat, `Lean.trustCompiler]

/-! ## What the host holds -/

/-- A request that cannot be done; its text goes to the caller. -/
structure Problem where
  kind : String
  text : String
  extra : List (String × Json) := []

def request (text : String) : Problem := ⟨"request", text, []⟩

/-- A proof state. It does not involve the kernel: it says what the elaborator accepts. -/
structure ProofState where
  core : Core.State
  coreContext : Core.Context
  metaState : Meta.State
  metaContext : Meta.Context
  term : Term.State
  termContext : Term.Context
  goals : List MVarId
  root : Expr
  /-- The environment of its imports; where the proof began, a number for all states that come of it; what it is a part of. -/
  base : Nat := 0
  origin : Nat := 0
  declaration : String := ""

/-- An environment; `base` is that of its imports, which knows which `own` modules of the project it has. -/
structure Kept where
  state : Command.State
  base : Nat
  own : NameSet := {}

structure Note where
  severity : MessageSeverity
  text : String
  line : Nat
  column : Nat
  finish : Option Position
  kind : String

/-- A place with `sorry`. -/
structure Hit where
  start : Nat
  stop : Nat
  isTactic : Bool
  declaration : String
  env : Environment
  /-- Before the declaration's command, and at its end. -/
  before : Environment
  finish : Environment
  ngen : NameGenerator
  mctx : MetavarContext
  place : MVarId ⊕ (LocalContext × Expr)

structure SorryEntry where
  hit : Hit
  states : Array Nat

/-- An error; what its command declares; and what there was before it, if it concerns all behind it. -/
structure Trouble where
  error : Note
  declared : NameSet
  before : Option Environment

/-- What became of a text. -/
structure Elaborated where
  state : Command.State
  base : Nat
  notes : Array Note
  stopped : String
  imports : Array Name
  sorries : Array SorryEntry
  troubles : Array Trouble
  ranCode : Bool

namespace Survey

structure Binder where
  info : BinderInfo
  type : Expr
  premise : Bool

/-- A statement: variables and premises in front, and what is concluded from them; `says`: that is a proposition. -/
structure Lemma where
  name : String
  binders : Array Binder
  conclusion : Expr
  says : Bool
  isLocal : Bool
  order : Nat
  /-- Whether it is a constructor of what it concludes. -/
  constructs : Bool := false

structure Alternative where
  name : String
  fields : Array (String × Bool)

/-- How values of an inductive type are taken apart. -/
structure Eliminator where
  indices : Nat
  alternatives : Array Alternative

/-- Statements of imported modules by the heads of what they conclude and of the left side of that; those with an `↔` also by
what is said on its left. -/
structure Library where
  conclusion : Std.HashMap (Name × Name) (List (Name × Expr)) := {}
  left : Std.HashMap Name (List (Name × Expr)) := {}
  equivalent : Std.HashMap (Name × Name) (List (Name × Expr)) := {}

/-- What is the same for all goals of a proof. -/
structure Known where
  binders : Std.HashMap Name (Array BinderInfo) := {}
  predicates : Std.HashMap Name Bool := {}
  eliminators : Std.HashMap Name (Option Eliminator) := {}
  lemmas : Std.HashMap Name (Option Lemma) := {}
  own : Array Lemma := #[]
  /-- What may still be read of a statement. -/
  budget : Nat := 0

end Survey

structure Host where
  states : IO.Ref (Std.HashMap Nat ProofState)
  environments : IO.Ref (Std.HashMap Nat Kept)
  imported : IO.Ref (Std.HashMap String Nat)
  libraries : IO.Ref (Std.HashMap String Environment)
  /-- Of imported environments, what a survey finds lemmas by; and what the last one knew, by where its proof began. -/
  indices : IO.Ref (Std.HashMap Nat Survey.Library)
  surveyed : IO.Ref (Option (Nat × Survey.Known))
  ownRoots : List String
  /-- The original that was read last: its text, its environment, and what it was. -/
  original : IO.Ref (Option (String × Nat × Elaborated))
  hasRead : IO.Ref Bool
  next : IO.Ref Nat
  listing : IO.Ref (String × Array (String × Name × ConstantInfo × Option Name))
  token : IO.Ref IO.CancelToken
  running : IO.Ref (Option Nat)
  verdict : IO.Ref String

abbrev M := ReaderT Host (EIO Problem)

instance : MonadLift IO M where
  monadLift act := fun _ => act.toEIO fun error => request (toString error)

def fresh : M Nat := do
  let number ← (← read).next.modifyGet fun n => (n, n + 1)
  return number

def theToken : M IO.CancelToken := do (← read).token.get

def wasStopped : M Bool := do return (← (← read).verdict.get) != ""

/-- The outcome of something that may throw a Lean exception. -/
def attempt (act : EIO Exception α) : M (Except Exception α) := do
  let outcome ← (act.toBaseIO : BaseIO _)
  return outcome

def exceptionText (error : Exception) : M String := do
  let text ← (error.toMessageData.toString : IO String)
  return text

/-! ## JSON -/

def object (fields : List (String × Json)) : Json := Json.mkObj fields
def texts (items : Array String) : Json := Json.arr (items.map Json.str)
def sorted (items : Array String) : Array String := items.qsort (· < ·)

def field? (request : Json) (key : String) : Option Json :=
  match request.getObjVal? key with
  | .ok .null => none
  | .ok value => some value
  | .error _ => none

def textField (json : Json) (key : String) (default : String := "") : String :=
  match field? json key with
  | some (.str text) => text
  | _ => default

def flagField (json : Json) (key : String) : Bool :=
  match field? json key with
  | some (.bool flag) => flag
  | _ => false

def listField (json : Json) (key : String) : Array Json :=
  match field? json key with
  | some (.arr items) => items
  | _ => #[]

def numberField? (json : Json) (key : String) : Option Nat :=
  (field? json key).bind fun value => value.getNat?.toOption

def textsField (json : Json) (key : String) : Array String :=
  (listField json key).filterMap fun item => item.getStr?.toOption

/-! ## Names -/

def components : Name → List Name
  | .anonymous => []
  | name@(.str parent _) => components parent ++ [name]
  | name@(.num parent _) => components parent ++ [name]

/-- How long a text is in UTF-16, as the other host counts. -/
def utf16Length (text : String) : Nat :=
  text.foldl (fun n c => n + if c.val > 0xffff then 2 else 1) 0

partial def nameKey (name : Name) : String :=
  match name with
  | .anonymous => ""
  | .str parent part => s!"{nameKey parent}{utf16Length part}:{part}"
  | .num parent part => s!"{nameKey parent}#{part}"

/-- A bound variable's name without what hygiene added to it. -/
def binderKey (name : Name) : String :=
  let hygienic := (components name).find? fun part => match part with | .str _ "_@" => true | _ => false
  nameKey ((hygienic.map Name.getPrefix).getD name)

def nameData : Name → List Json
  | .anonymous => []
  | .str parent part => nameData parent ++ [Json.str part]
  | .num parent part => nameData parent ++ [object [("num", Json.str (toString part))]]

def nameOfData (data : Json) : Name :=
  match data with
  | .arr parts => parts.foldl (init := Name.anonymous) fun name part =>
      match part with
      | .str text => .str name text
      | other => .num name (((other.getObjValAs? String "num").toOption.bind String.toNat?).getD 0)
  | .str text => text.toName
  | _ => .anonymous

/-! ## Messages -/

def severityText : MessageSeverity → String
  | .information => "information"
  | .warning => "warning"
  | .error => "error"

def Note.json (note : Note) : Json := object [
  ("severity", severityText note.severity), ("text", note.text), ("line", note.line), ("column", note.column),
  ("end_line", match note.finish with | some at_ => toJson at_.line | none => .null),
  ("end_column", match note.finish with | some at_ => toJson at_.column | none => .null), ("kind", note.kind)]

def errorNote (text : String) : Note := ⟨.error, text, 1, 0, none, ""⟩

def readMessage (message : Message) : M Note := do
  let text ← (message.data.toString : IO String)
  let kind := kindOf message
  let isSorry := message.severity matches .warning && text == "declaration uses 'sorry'"
  return ⟨message.severity, text, message.pos.line, message.pos.column, message.endPos,
    if kind.isAnonymous then (if isSorry then "hasSorry" else "") else kind.toString⟩

def readLog (log : MessageLog) : M (Array Note) := log.toList.toArray.mapM readMessage

def notesJson (notes : Array Note) : Json := Json.arr (notes.map Note.json)
def errorsOf (notes : Array Note) : Array Note := notes.filter (·.severity matches .error)

/-! ## Syntax -/

def rangeOf (stx : Syntax) : Option (Nat × Nat) := do
  return ((← stx.getPos?).byteIdx, (← stx.getTailPos?).byteIdx)

def kindText (stx : Syntax) : String :=
  match stx with
  | .node _ kind _ => kind.toString
  | _ => ""

/-- Folds over a tree, parents first. -/
partial def walk (stx : Syntax) (state : σ) (visit : σ → Syntax → σ) : σ :=
  let here := visit state stx
  match stx with
  | .node _ _ children => children.foldl (fun soFar child => walk child soFar visit) here
  | _ => here

partial def outline (stx : Syntax) (depth : Nat) : Json :=
  let (start, stop) : Json × Json := match rangeOf stx with
    | some (first, last) => (toJson first, toJson last)
    | none => (toJson (-1 : Int), toJson (-1 : Int))
  let children := match stx with
    | .node _ _ children => if depth > 0 then children.map (outline · (depth - 1)) else #[]
    | _ => #[]
  object [("kind", kindText stx), ("start", start), ("end", stop), ("children", .arr children)]

/-! ## Elaborating text -/

structure Header where
  input : Parser.InputContext
  parser : Parser.ModuleParserState
  imports : Array Import
  log : MessageLog

def parseHeader (text : String) : M Header := do
  let input := Parser.mkInputContext text "<input>"
  let (header, parser, log) ← (Parser.parseHeader input : IO _)
  return { input, parser, log, imports := headerToImports header }

def keep (state : Command.State) (base : Option Nat) (own : NameSet := {}) : M Nat := do
  let id ← fresh
  (← read).environments.modify (·.insert id { state, base := base.getD id, own })
  return id

def findKept (id : Nat) : M Kept := do
  match (← (← read).environments.get)[id]? with
  | some kept => return kept
  | none => throw (request s!"there is no environment {id}")

def importKey (imports : Array Name) : String :=
  String.intercalate "," (sorted (imports.map fun module => toString module)).toList

/-- Which imported modules are compiled below the project's own directories: a judge does not import them. -/
def ownModules (env : Environment) : M NameSet := do
  let roots := (← read).ownRoots
  if roots.isEmpty then return {}
  env.allImportedModuleNames.foldlM (init := {}) fun found module => do
    let path := (← (findOLean module : IO _)).toString
    return if roots.any fun root => path.startsWith (root ++ "/") then found.insert module else found

/-- The environment of a header's imports, which are loaded once. -/
def openHeader (header : Header) : M (Except (Array Note) Nat) := do
  let host ← read
  let wrong := errorsOf (← readLog header.log)
  if !wrong.isEmpty then return .error wrong
  let key := importKey (header.imports.map (·.module))
  if let some id := (← host.imported.get)[key]? then return .ok id
  let imported ← ((importAll header.imports).toBaseIO : BaseIO _)
  match imported with
  | .error error => return .error #[errorNote (toString error)]
  | .ok env =>
    let state := Command.mkState (env.setMainModule `Main) {} plainOptions
    let id ← keep { state with infoState := { state.infoState with enabled := false } } none (← ownModules env)
    host.imported.modify (·.insert key id)
    return .ok id

def withInfo (state : Command.State) (enabled : Bool) : Command.State :=
  { state with infoState := { state.infoState with enabled, trees := {} } }

/-- A command that was elaborated, as it was parsed; the text goes on at the byte `stop`. -/
structure Step where
  command : Syntax
  before : Command.State
  after : Command.State
  notes : Array Note
  stop : Nat

/-- What looks at each command: before it runs, perhaps to change or to stop it, and after. -/
structure Watch where
  inspect : Syntax → Syntax × String := fun command => (command, "")
  after : PersistentArray InfoTree → Command.State → M Unit := fun _ _ => pure ()
  /-- Whether the text has been read far enough. -/
  passed : Step → M Bool := fun _ => pure false

def elaborateOne (command : Syntax) (state : Command.State) (input : Parser.InputContext) : M (Command.State × Array Note) := do
  let clean := { state with messages := {}, infoState := { state.infoState with trees := {} } }
  let ref ← (IO.mkRef clean : BaseIO _)
  let outcome ← attempt ((Command.elabCommandTopLevel command) (commandContext input (← theToken)) ref)
  let result ← (ref.get : BaseIO _)
  let mut notes ← readLog result.messages
  if let .error error := outcome then
    unless ← wasStopped do notes := notes.push (errorNote (← exceptionText error))
  return (result, notes)

partial def elaborate (state : Command.State) (input : Parser.InputContext) (parser : Parser.ModuleParserState)
    (watch : Watch) (notes : Array Note := #[]) : M (Command.State × Array Note × String) := do
  let scope := state.scopes.head!
  let context := { env := state.env, options := scope.opts, currNamespace := scope.currNamespace, openDecls := scope.openDecls }
  let (parsed, parser, log) := Parser.parseCommand input context parser {}
  let said ← readLog log
  let notes := notes ++ said
  let (command, stopped) := watch.inspect parsed
  if Parser.isTerminalCommand parsed then
    let kind := kindText parsed
    let early := if kind == "Lean.Parser.Command.eoi" then "" else s!"the text ends early, at {kind}"
    return (state, notes, if stopped == "" then early else stopped)
  if stopped != "" then return (state, notes, stopped)
  let (next, more) ← elaborateOne command state input
  watch.after next.infoState.trees state
  if ← wasStopped then return (next, notes ++ more, "interrupted")
  let step : Step := { command := parsed, before := state, after := next, notes := said ++ more, stop := parser.pos.byteIdx }
  if ← watch.passed step then return (next, notes ++ more, "")
  elaborate next input parser watch (notes ++ more)

/-- Runs something in TermElabM on a command state. -/
def inTermElab (state : Command.State) (act : TermElabM α) : M (Except Exception α) := do
  let ref ← (IO.mkRef { state with messages := {} } : BaseIO _)
  attempt ((Command.liftTermElabM act) (commandContext (Parser.mkInputContext "" "<input>") (← theToken)) ref)

/-! ## Goals as data, see `Goal` in types.py for what the hash covers -/

structure Canonical where
  numbers : Std.HashMap String Nat := {}
  seen : Std.HashMap USize Nat := {}
  lines : Array String := #[]
  metavariables : Array MVarId := #[]
  levels : Std.HashMap Name Nat := {}

def quoted (text : String) : String :=
  let hex (n : Nat) := "0123456789abcdef".toList[n]?.getD '0'
  let escaped := text.foldl (init := "") fun soFar c =>
    match c with
    | '"' => soFar ++ "\\\""
    | '\\' => soFar ++ "\\\\"
    | '\n' => soFar ++ "\\n"
    | '\r' => soFar ++ "\\r"
    | '\t' => soFar ++ "\\t"
    | c =>
      if c.toNat == 8 then soFar ++ "\\b"
      else if c.toNat == 12 then soFar ++ "\\f"
      else if c.toNat < 32 then ((soFar ++ "\\u00").push (hex (c.toNat / 16))).push (hex (c.toNat % 16))
      else soFar.push c
  "\"" ++ escaped ++ "\""

def binderNumber : BinderInfo → Nat
  | .default => 0
  | .implicit => 1
  | .strictImplicit => 2
  | .instImplicit => 3

section
variable (fvar : FVarId → String)

private def number (text : String) : StateM Canonical Nat := modifyGet fun s =>
  match s.numbers[text]? with
  | some n => (n, s)
  | none => let n := s.numbers.size; (n, { s with numbers := s.numbers.insert text n, lines := s.lines.push text })

private partial def levelText (level : Level) : StateM Canonical String := do
  match level with
  | .zero => return "0"
  | .succ l => return s!"S{← levelText l}"
  | .max a b => return s!"M({← levelText a},{← levelText b})"
  | .imax a b => return s!"I({← levelText a},{← levelText b})"
  | .param n => return s!"p<{nameKey n}>"
  | .mvar id => modifyGet fun s =>
    match s.levels[id.name]? with
    | some n => (s!"?{n}", s)
    | none => (s!"?{s.levels.size}", { s with levels := s.levels.insert id.name s.levels.size })

/-- The number of a term in a list of the distinct subterms, which is its canonical text. -/
private unsafe def canonical (e : Expr) : StateM Canonical Nat := do
  let address := ptrAddrUnsafe e
  if let some n := (← get).seen[address]? then return n
  let n ← match e with
    | .bvar i => number s!"b{i}"
    | .fvar id => number s!"f{fvar id}"
    | .mvar id => do
      let s ← get
      match s.metavariables.findIdx? (· == id) with
      | some i => number s!"?{i}"
      | none =>
        modify fun s => { s with metavariables := s.metavariables.push id }
        number s!"?{s.metavariables.size}"
    | .sort l => number s!"s{← levelText l}"
    | .const name levels => do
      let shown ← levels.mapM levelText
      number s!"c{nameKey name}\{{String.intercalate "," shown}}"
    | .app f a => do
      let left ← canonical f
      number s!"a{left} {← canonical a}"
    | .lam name type body info => do
      let domain ← canonical type
      number s!"l{binderNumber info}{binderKey name} {domain} {← canonical body}"
    | .forallE name type body info => do
      let domain ← canonical type
      number s!"A{binderNumber info}{binderKey name} {domain} {← canonical body}"
    | .letE name type value body nonDep => do
      let a ← canonical type
      let b ← canonical value
      number s!"L{if nonDep then 1 else 0}{binderKey name} {a} {b} {← canonical body}"
    | .lit (.natVal n) => number s!"n{n}"
    | .lit (.strVal text) => number s!"\"{quoted text}"
    | .mdata _ inner => canonical inner
    | .proj name i inner => do
      let part ← canonical inner
      number s!"P{nameKey name}.{i} {part}"
  modify fun s => { s with seen := s.seen.insert address n }
  return n
end

structure Reading where
  text : String
  metavariables : Array MVarId
  shown : String

def width : Nat := 100

def printed (e : Expr) : MetaM String := do
  return (← Meta.ppExpr e).pretty width

private unsafe def readTerm (shownNames : Std.HashMap FVarId String) (e : Expr) (wanted : Bool) : MetaM Reading := do
  let whole ← instantiateMVars e
  let fvar id := (shownNames[id]?).getD s!"?{id.name}"
  let (_, result) := (canonical fvar whole).run {}
  let shown ← if wanted then printed whole else pure ""
  return ⟨String.intercalate "\n" result.lines.toList, result.metavariables, shown⟩

structure Numbering where
  known : Array MVarId := #[]
  waiting : List MVarId := []
  hashed : String := ""

private def mention (id : MVarId) : StateM Numbering Nat := modifyGet fun s =>
  match s.known.findIdx? (· == id) with
  | some i => (i, s)
  | none => (s.known.size, { s with known := s.known.push id, waiting := s.waiting ++ [id] })

private def hashReading (reading : Reading) : StateM Numbering Unit := do
  let numbers ← reading.metavariables.mapM mention
  let list := String.intercalate "," (numbers.map toString).toList
  modify fun s => { s with hashed := s.hashed ++ reading.text ++ "\x01" ++ list ++ "\x01" }

private unsafe def describe (goal : MVarId) (options : Options) : MetaM Json := do
  let some decl := (← getMCtx).findDecl? goal | throwError "unknown goal {goal.name}"
  let (lctx, _) := decl.lctx.sanitizeNames.run { options }
  Meta.withLCtx lctx decl.localInstances do
    let mut names : Std.HashMap FVarId String := {}
    for local_ in lctx do names := names.insert local_.fvarId local_.userName.toString
    let mut numbering : Numbering := {}
    let mut hypotheses := #[]
    for local_ in lctx do
      unless local_.kind matches .default do continue
      let name := local_.userName.toString
      let type ← readTerm names local_.type true
      numbering := { numbering with hashed := numbering.hashed ++ "h" ++ name ++ "\x01" }
      numbering := ((hashReading type).run numbering).2
      let value ← match local_ with
        | .ldecl (value := value) .. => do
          let reading ← readTerm names value true
          numbering := ((hashReading reading).run numbering).2
          pure (Json.str reading.shown)
        | _ => pure Json.null
      let accessible := !name.any (· == '✝')
      hypotheses := hypotheses.push (object [("name", name), ("type", type.shown), ("value", value), ("accessible", accessible)])
    numbering := { numbering with hashed := numbering.hashed ++ "⊢\x01" }
    let target ← readTerm names decl.type true
    numbering := ((hashReading target).run numbering).2
    repeat
      let next :: rest := numbering.waiting | break
      numbering := { numbering with waiting := rest }
      let mctx ← getMCtx
      if let some delayed := mctx.getDelayedMVarAssignmentCore? next then
        numbering := ((mention delayed.mvarIdPending).run numbering).2
      if let some own := mctx.findDecl? next then
        let type ← readTerm names own.type false
        numbering := ((hashReading type).run numbering).2
    return object [
      ("id", goal.name.toString), ("case", if decl.userName.isAnonymous then .null else .str decl.userName.toString),
      ("hypotheses", .arr hypotheses), ("target", target.shown),
      ("metavariables", texts (numbering.known.map fun id => id.name.toString)), ("hashed", numbering.hashed)]

@[implemented_by describe]
opaque describeGoal (goal : MVarId) (options : Options) : MetaM Json

/-! ## Proof states -/

def keepProof (state : ProofState) : M Nat := do
  let id ← fresh
  (← read).states.modify (·.insert id state)
  return id

def findProof (id : Nat) : M ProofState := do
  match (← (← read).states.get)[id]? with
  | some state => return state
  | none => throw (request s!"there is no proof state {id}")

def freshCore (context : Core.Context) : M Core.Context := do
  let heartbeats ← (IO.getNumHeartbeats : BaseIO _)
  return { context with initHeartbeats := heartbeats, cancelTk? := some (← theToken) }

/-- Runs something in MetaM in a proof state, which stays as it is. -/
def inProof (state : ProofState) (act : MetaM α) : M α := do
  let metaRef ← (IO.mkRef state.metaState : BaseIO _)
  let coreRef ← (IO.mkRef state.core : BaseIO _)
  match ← attempt (act state.metaContext metaRef (← freshCore state.coreContext) coreRef) with
  | .ok result => return result
  | .error error => throw (request (← exceptionText error))

def report (id : Nat) (notes : Array Note) : M (List (String × Json)) := do
  let state ← findProof id
  let goals ← state.goals.toArray.mapM fun goal => inProof state (describeGoal goal state.coreContext.options)
  return [("state", toJson id), ("goals", .arr goals), ("messages", notesJson notes)]

def capture (root : Expr) : TermElabM ProofState := do
  return {
    core := ← getThe Core.State, coreContext := ← readThe Core.Context, metaState := ← getThe Meta.State,
    metaContext := ← readThe Meta.Context, term := ← getThe Term.State, termContext := ← readThe Term.Context,
    goals := [root.mvarId!], root }

/-- Opens a proof of a type that is made in TermElabM. -/
def openProof (kept : Kept) (makeType : TermElabM Expr) : M Nat := do
  let outcome ← inTermElab kept.state do
    let type ← makeType
    let log ← Core.getMessageLog
    let goal ← Meta.mkFreshExprSyntheticOpaqueMVar type
    return (log, ← capture goal)
  match outcome with
  | .error error => throw ⟨"statement", ← exceptionText error, []⟩
  | .ok (log, proof) =>
    let wrong := errorsOf (← readLog log)
    unless wrong.isEmpty do throw ⟨"statement", String.intercalate "\n" (wrong.map (·.text)).toList, []⟩
    keepProof { proof with base := kept.base, origin := ← fresh }

def statementType (stx : Syntax) : TermElabM Expr := do
  let type ← Term.elabType stx
  Term.synthesizeSyntheticMVarsNoPostponing
  let type ← instantiateMVars type
  if type.hasExprMVar then throwError "the statement leaves something for Lean to guess that it cannot"
  return type

/-- One tactic, or several on lines of their own; several come first where there are lines. -/
def parseTactic (env : Environment) (text : String) : Except String Syntax :=
  let single := Parser.runParserCategory env `tactic text
  let several := Parser.runParserCategory env `tactic s!"(\n{text}\n)"
  let (first, second) := if text.any (· == '\n') then (several, single) else (single, several)
  match first, second with
  | .ok stx, _ => .ok stx
  | .error _, .ok stx => .ok stx
  | .error error, .error _ => .error error

def completeness (state : ProofState) : M (List (String × Json)) := do
  let whole ← inProof state (instantiateMVars state.root)
  let usesSorry := whole.getUsedConstants.contains ``sorryAx
  return [("complete", !whole.hasExprMVar && !usesSorry), ("uses_sorry", usesSorry)]

/-- What a state's proof uses and must not, in words; "" if nothing: see proofs.js. -/
def excludedUse (state : ProofState) (without : Array String) : M String := do
  unless !without.isEmpty || (state.goals.isEmpty && state.declaration != "") do return ""
  let used := (← inProof state (instantiateMVars state.root)).getUsedConstants
  let isOwn (name : Name) := (userName name).toString == state.declaration &&
    (match state.core.env.find? name with | some (.thmInfo _) => true | _ => false)
  if state.goals.isEmpty && used.any isOwn then return s!"the proof uses {state.declaration} itself"
  let excluded := (used.map fun name => (userName name).toString).filter without.contains
  return if excluded.isEmpty then "" else s!"it uses {String.intercalate ", " excluded.toList}, not proved yet"

def hasText (text : String) (part : String) : Bool := (text.splitOn part).length > 1

def runTactic (id : Nat) (text : String) (heartbeats : Nat) (without : Array String) : M (List (String × Json)) := do
  let state ← findProof id
  let stx ← match parseTactic state.core.env text with
    | .ok stx => pure stx
    | .error error => throw ⟨"parse", error, []⟩
  let tacticRef ← (IO.mkRef { goals := state.goals : Tactic.State } : BaseIO _)
  let termRef ← (IO.mkRef state.term : BaseIO _)
  let metaRef ← (IO.mkRef state.metaState : BaseIO _)
  let coreRef ← (IO.mkRef { state.core with messages := {} } : BaseIO _)
  let act : Tactic.TacticM Unit := do
    Tactic.evalTactic stx
    Term.synthesizeSyntheticMVarsNoPostponing
    Tactic.pruneSolvedGoals
  let context ← freshCore state.coreContext
  let limited := if heartbeats == 0 then context else { context with maxHeartbeats := heartbeats }
  let outcome ← attempt (act { elaborator := .anonymous, recover := false } tacticRef state.termContext termRef state.metaContext
    metaRef limited coreRef)
  let core ← (coreRef.get : BaseIO _)
  let notes ← readLog core.messages
  let logged := String.intercalate "\n" ((errorsOf notes).map (·.text)).toList
  match outcome with
  | .error error =>
    let isInternal := match error with | .internal .. => true | _ => false
    let own ← exceptionText error
    let shown := if isInternal && logged != "" then logged else own
    let exhausted := hasText shown "(deterministic) timeout" || hasText shown "maximum recursion depth"
    throw ⟨if exhausted then "exhausted" else "tactic", shown, [("messages", notesJson notes)]⟩
  | .ok _ =>
    if logged != "" then throw ⟨"tactic", logged, [("messages", notesJson notes)]⟩
    let next := { state with
      core, metaState := ← (metaRef.get : BaseIO _), term := ← (termRef.get : BaseIO _)
      goals := (← (tacticRef.get : BaseIO _)).goals }
    let excluded ← excludedUse next without
    if excluded != "" then throw ⟨"tactic", excluded, [("messages", notesJson notes)]⟩
    let reply ← report (← keepProof next) notes
    if next.goals.isEmpty then return reply ++ (← completeness next) else return reply

/-- The same state with some of its goals only; it is complete when these are closed. -/
def focus (id : Nat) (indices : Array Nat) : M Nat := do
  let state ← findProof id
  let some first := indices[0]? | throw (request "there is no goal to focus on")
  let goals ← indices.toList.mapM fun i =>
    match state.goals[i]? with
    | some goal => pure goal
    | none => throw (request s!"state {id} has {state.goals.length} goals")
  -- An application of one goal to the next is no term; it is only searched for holes.
  let root := goals.tail.foldl (fun several goal => mkApp several (mkMVar goal)) (mkMVar (state.goals[first]?.getD goals.head!))
  keepProof { state with goals, root }

/-! ## Every `sorry` that elaboration met -/

def matchSorry (info : Info) (context : CommandContextInfo) (declaration : String) (before finish : Environment) : Option Hit := do
  match info with
  | .ofTacticInfo details =>
    guard (["Lean.Parser.Tactic.tacticSorry", "Lean.Parser.Tactic.tacticAdmit"].contains (kindText details.stx))
    let (start, stop) ← rangeOf details.stx
    let goal ← details.goalsBefore.head?
    return {
      start, stop, isTactic := true, declaration, env := context.env, before, finish, ngen := context.ngen
      mctx := details.mctxBefore, place := .inl goal }
  | .ofTermInfo details =>
    guard (kindText details.stx == "Lean.Parser.Term.sorry")
    let (start, stop) ← rangeOf details.stx
    let type ← details.expectedType?
    return {
      start, stop, isTactic := false, declaration, env := context.env, before, finish, ngen := context.ngen, mctx := context.mctx
      place := .inr (details.lctx, type) }
  | _ => none

/-- `last`: the environment after the command that is over, of those inside `open … in …`. -/
structure Found where
  hits : Array Hit := #[]
  last : Environment

partial def findSorries (tree : InfoTree) (context : Option CommandContextInfo) (declaration : String) (finish : Environment) (found : Found) : Found :=
  match tree with
  | .context part child =>
    let context := if let .commandCtx inner := part then some inner else context
    let declaration := if let .parentDeclCtx name := part then (if name.isAnonymous then "" else (userName name).toString) else declaration
    match part, child with
    | .commandCtx inner, .node (.ofCommandInfo _) _ =>
      { findSorries child context declaration inner.env found with last := inner.env }
    | _, _ => findSorries child context declaration finish found
  | .hole _ => found
  | .node info children =>
    let inside (found : Found) := children.foldl (fun soFar c => findSorries c context declaration finish soFar) found
    match context.bind (matchSorry info · declaration found.last finish) with
    | some hit =>
      let found := { found with hits := found.hits.push hit }
      if hit.isTactic then found else inside found
    | none => inside found

/-- The environment of a `sorry` without what its declaration's attributes did: see attributes.js. -/
private unsafe def withheldUnsafe (hit : Hit) : BaseIO Environment := do
  let mut env := hit.env
  for each in ← scopedEnvExtensionsRef.get do
    let [here, earlier, later] := [hit.env, hit.before, hit.finish].map each.ext.getState | continue
    if ptrAddrUnsafe here == ptrAddrUnsafe later && ptrAddrUnsafe here != ptrAddrUnsafe earlier then
      env := each.ext.setState env earlier
  return env

@[implemented_by withheldUnsafe]
opaque withheld (hit : Hit) : BaseIO Environment

def startAt (state : Command.State) (base : Nat) (hit : Hit) : M Nat := do
  let outcome ← inTermElab state do
    setEnv (← (withheld hit : BaseIO _))
    setNGen hit.ngen
    setMCtx hit.mctx
    match hit.place with
    | .inl goal => capture (mkMVar goal)
    | .inr (lctx, type) =>
      let decls := lctx.foldl (fun list decl => decl :: list) [] |>.reverse
      let goal ← Meta.withLCtx lctx #[] <| Meta.withLocalInstances decls <| Meta.mkFreshExprSyntheticOpaqueMVar type
      capture goal
  match outcome with
  | .ok proof => keepProof { proof with base, origin := ← fresh, declaration := hit.declaration }
  | .error error => throw (request (← exceptionText error))

/-! ## The policy on generated text; see escapes.py -/

def optionKinds : List String :=
  ["Lean.Parser.Command.set_option", "Lean.Parser.Term.set_option", "Lean.Parser.Tactic.set_option"]
def configKinds : List String := ["Lean.Parser.Tactic.valConfigItem", "Lean.Parser.Tactic.config"]
def flagKind : String := "Lean.Parser.Tactic.posConfigItem"
def plainKinds : List String := configKinds ++ [
  "null", "num", "str", "group", "hygieneInfo", "Lean.Parser.Term.structInst", "Lean.Parser.Term.structInstFields",
  "Lean.Parser.Term.structInstField", "Lean.Parser.Term.structInstFieldDef", "Lean.Parser.Term.structInstLVal",
  "Lean.Parser.Term.optEllipsis", "Lean.Parser.Term.dotIdent", "Lean.Parser.Term.paren"]

def firstWord (stx : Syntax) : String :=
  walk stx "" fun word part =>
    if word != "" then word else match part with
      | .atom _ text => text
      | .ident _ _ name _ => name.toString
      | _ => ""

def impureConfig (stx : Syntax) : String :=
  walk stx "" fun problem part =>
    if problem != "" then problem else match part with
      | .node _ kind _ => if plainKinds.contains kind.toString then "" else kind.toString
      | .ident _ _ name _ => if name == `native then "native" else ""
      | _ => ""

structure Policy where
  ranges : Array (Nat × Nat)
  commands : Std.HashSet String
  kinds : Std.HashSet String
  atoms : Std.HashSet String
  options : Std.HashSet String
  attributes : Std.HashSet String

def Policy.ofJson (json : Json) : Policy :=
  let set (key : String) : Std.HashSet String := (textsField json key).foldl (·.insert ·) {}
  let ranges := (listField json "ranges").filterMap fun pair => do
    let items ← pair.getArr?.toOption
    return (← (← items[0]?).getNat?.toOption, ← (← items[1]?).getNat?.toOption)
  { ranges, commands := set "commands", kinds := set "kinds", atoms := set "atoms", options := set "options", attributes := set "attributes" }

def Policy.isGenerated (policy : Policy) (stx : Syntax) : Bool :=
  match rangeOf stx with
  | some (start, stop) => policy.ranges.any fun (first, last) => start < last && stop > first
  | none => false

def Policy.violation (policy : Policy) (stx : Syntax) : String :=
  match stx with
  | .node _ kind children =>
    let kind := kind.toString
    let configures := configKinds.contains kind || kind == flagKind
    let interesting := configures || policy.kinds.contains kind || optionKinds.contains kind || kind == "Lean.Parser.Term.attrInstance"
    if !interesting || !policy.isGenerated stx then ""
    else if policy.kinds.contains kind then s!"escape: {kind}"
    else if kind == flagKind then
      if children.any fun c => firstWord c == "native" then "escape: native in a configuration" else ""
    else if configures then
      let problem := impureConfig stx
      if problem == "" then "" else s!"escape: {problem} in a configuration"
    else
      let word := firstWord (children[1]?.getD .missing)
      if optionKinds.contains kind then (if policy.options.contains word then "" else s!"escape: option {word}")
      else if policy.attributes.contains word then "" else s!"escape: attribute {word}"
  | .atom _ text => if policy.atoms.contains text && policy.isGenerated stx then s!"escape: {text}" else ""
  | _ => ""

def Policy.inspect (policy : Policy) (command : Syntax) : Syntax × String :=
  if !policy.isGenerated command then (command, "") else
  let start := ((rangeOf command).map (·.1)).getD 0
  let begins := policy.ranges.any fun (first, last) => start >= first && start < last
  let kind := kindText command
  if begins && !policy.commands.contains kind then (command, s!"escape: command {kind}")
  else (command, walk command "" fun found part => if found != "" then found else policy.violation part)

/-! ## What rests on `sorry` -/

/-- A text that turns the warning about `sorry` off is read as one that turns it on. -/
def warnAlways (command : Syntax) : Syntax × String :=
  let isOurs (stx : Syntax) := stx.getArgs.any fun part => match part with
    | .ident _ _ name _ => name == `warn.sorry
    | _ => false
  let changed := Id.run <| command.replaceM fun stx =>
    if optionKinds.contains (kindText stx) && isOurs stx then
      some (stx.setArgs (stx.getArgs.map fun part => match part with
        | .atom info "false" => .atom info "true"
        | other => other))
    else none
  (changed, "")

/-- What compilers before 4.22 leave beside a definition. -/
def isCompiled (env : Environment) (name : Name) : Bool :=
  match name with
  | .str parent part => (part == "_cstage1" || part == "_cstage2") && env.contains parent
  | _ => false

/-- The constants of this session. -/
def ownConstants (env : Environment) : Array (Name × ConstantInfo) :=
  env.constants.foldStage2 (fun list name info => if isCompiled env name then list else list.push (name, info)) #[]

def mentioned (info : ConstantInfo) : Array Name :=
  let inside := match info.value? with
    | some value => value.getUsedConstants
    | none => match info with
      | .thmInfo details => details.value.getUsedConstants
      | .opaqueInfo details => details.value.getUsedConstants
      | _ => #[]
  info.type.getUsedConstants ++ inside

def isImported (env : Environment) (name : Name) : Bool := (env.getModuleIdxFor? name).isSome

/-- Everything a constant is made of. -/
def dependencies (info : ConstantInfo) : Array Name :=
  mentioned info ++ match info with
    | .inductInfo details => details.all.toArray ++ details.ctors.toArray
    | .ctorInfo details => #[details.induct]
    | .recInfo details => details.rules.foldl (fun names rule => names ++ rule.rhs.getUsedConstants) details.all.toArray
    | _ => #[]

partial def spread (users : Std.HashMap Name (Array Name)) (todo : List Name) (reached : NameSet) : NameSet :=
  match todo with
  | [] => reached
  | name :: rest =>
    let more := ((users[name]?).getD #[]).filter fun user => !reached.contains user
    spread users (more.toList ++ rest) (more.foldl (·.insert ·) reached)

def unproved (env : Environment) : Array String :=
  let own := ownConstants env
  let users : Std.HashMap Name (Array Name) := own.foldl (init := {}) fun map (name, info) =>
    (mentioned info).foldl (fun map used => map.insert used ((map.getD used #[]).push name)) map
  let resting := spread users [``sorryAx] {}
  let names := (own.map (·.1)).filter resting.contains
  let plain := names.filter fun name => !name.isInternalDetail
  let shown := (if plain.isEmpty then names else plain).map fun name => (userName name).toString
  sorted (shown.foldl (fun list name => if list.contains name then list else list.push name) #[])

/-! ## What an environment contains -/

def kindName : ConstantInfo → String
  | .axiomInfo _ => "axiom"
  | .defnInfo _ => "def"
  | .thmInfo _ => "theorem"
  | .opaqueInfo _ => "opaque"
  | .quotInfo _ => "quot"
  | .inductInfo _ => "inductive"
  | .ctorInfo _ => "constructor"
  | .recInfo _ => "recursor"

/-- A declaration by the name that a caller writes: as it is, or private to the text. -/
def resolve (env : Environment) (text : String) : Option (Name × ConstantInfo) :=
  let plain := text.toName
  [plain, mkPrivateName env plain].findSome? fun name => (env.find? name).map fun info => (name, info)

/-- What constants rest on, and the axioms among it. A constant that is not there counts as one. -/
structure Reached where
  visited : Std.HashSet Name := {}
  axioms : Array Name := #[]

partial def reach (env : KernelEnv) (todo : List Name) (soFar : Reached) : Reached :=
  match todo with
  | [] => soFar
  | name :: rest =>
    if soFar.visited.contains name then reach env rest soFar else
    let soFar := { soFar with visited := soFar.visited.insert name }
    match kernelFind? env name with
    | none => reach env rest { soFar with axioms := soFar.axioms.push name }
    | some info =>
      let soFar := if info matches .axiomInfo _ then { soFar with axioms := soFar.axioms.push name } else soFar
      let more := (dependencies info).filter fun other => !soFar.visited.contains other
      reach env (more.foldl (fun list other => other :: list) rest) soFar

/-- Everything that some constants rest on, imported proofs included. By the terms themselves: since 4.30 Lean's own
`collectAxioms` believes a table in the compiled modules, which code that ran while they were compiled can write. -/
def restingOn (env : Environment) (names : List Name) : Reached := reach (kernelOf env) names {}

structure Resting where
  axioms : NameSet := {}
  own : Array Name := #[]
  missing : Array Name := #[]
  unsafe_ : Array Name := #[]
  seen : NameSet := {}
  imported : Array Name := #[]

partial def ownClosure (env : Environment) (todo : List Name) (soFar : Resting := {}) : Resting :=
  match todo with
  | [] => soFar
  | name :: rest =>
    if soFar.seen.contains name then ownClosure env rest soFar else
    let soFar := { soFar with seen := soFar.seen.insert name }
    match env.find? name with
    | none => ownClosure env rest { soFar with missing := soFar.missing.push name }
    | some info =>
      let soFar := if info.isUnsafe || info.isPartial then { soFar with unsafe_ := soFar.unsafe_.push name } else soFar
      if isImported env name then ownClosure env rest { soFar with imported := soFar.imported.push name }
      else
        let soFar := if info matches .axiomInfo _ then { soFar with axioms := soFar.axioms.insert name } else soFar
        ownClosure env ((dependencies info).toList ++ rest) { soFar with own := soFar.own.push name }

def shownNames (names : Array Name) : Array String := names.map fun name => name.toString

def auditReport (env : Environment) (text : String) : Option (List (String × Json)) := do
  let (name, info) ← resolve env text
  let resting := ownClosure env [name]
  let reached := (restingOn env resting.imported.toList).axioms
  let axioms := reached.foldl (·.insert ·) resting.axioms
  return [
    ("name", Json.str name.toString), ("kind", Json.str (kindName info)), ("axioms", texts (sorted (shownNames axioms.toArray))),
    ("local", texts (sorted (shownNames resting.own))), ("missing", texts (shownNames resting.missing)),
    ("unsafe", texts (shownNames resting.unsafe_))]

/-- What a text declares by itself, without what Lean makes for its own use. -/
def declaredNames (env : Environment) : Array Name :=
  (ownConstants env).map (·.1) |>.filter fun name => !(userName name).isInternalDetail && !isReservedName env name

/-- What a text leaves open; auxiliary declarations only if nothing else mentions them. -/
def openNames (env : Environment) : Array Name := Id.run do
  let mut known : NameSet := {}
  let mut found := #[]
  for name in declaredNames env do
    let resting := ownClosure env [name]
    for other in resting.own do known := known.insert other
    if resting.imported.contains ``sorryAx then found := found.push name
  for (name, _) in ownConstants env do
    if !known.contains name && (ownClosure env [name]).imported.contains ``sorryAx then found := found.push name
  return found

def listRows (env : Environment) (only : String) (module : String) : Array (String × Name × ConstantInfo × Option Name) := Id.run do
  let mut rows := #[]
  let mut seen : NameSet := {}
  let modules := env.allImportedModuleNames
  for data in env.header.moduleData, i in [0:modules.size] do
    let owner := modules[i]!
    if module != "" && owner.toString != module && !owner.toString.startsWith (module ++ ".") then continue
    for name in data.constNames, info in data.constants do
      if name.isInternalDetail then continue
      let text := name.toString
      if text.startsWith only && !seen.contains name then
        seen := seen.insert name
        rows := rows.push (text, name, info, some owner)
  if module == "" then
    for (name, info) in ownConstants env do
      let text := name.toString
      if text.startsWith only && !name.isInternalDetail then rows := rows.push (text, name, info, none)
  return rows.qsort fun a b => a.1 < b.1

/-! ## Which declarations an error elsewhere in their text has nothing to do with; see troubles.js -/

def changesNothing : List String :=
  (["theorem", "example", "check", "check_failure", "eval", "evalBang", "reduce", "print", "printAxioms", "printSig", "printEqns",
    "synth", "where", "moduleDoc", "eoi"]).map ("Lean.Parser.Command." ++ ·)
  ++ ["Lean.guardCmd", "Lean.guardMsgsCmd", "Lean.reduceCmd"]

/-- Whether an error in a command may concern what does not rest on anything that it declares. -/
partial def reachesFurther (command : Syntax) (declaresSome : Bool) : Bool :=
  let kind := kindText command
  if kind == "Lean.Parser.Command.in" then reachesFurther (command.getArgs.back?.getD .missing) declaresSome
  else if changesNothing.contains kind then false
  else if kind == "Lean.Parser.Command.mutual" then !declaresSome
  else if kind == "Lean.Parser.Command.declaration" then !declaresSome && !changesNothing.contains (kindText command[1])
  else true

def troubleOf (step : Step) : Option Trouble := do
  let error ← (errorsOf step.notes)[0]?
  let declared := (ownConstants step.after.env).foldl (init := {}) fun set (name, _) =>
    if step.before.env.contains name then set else set.insert name
  return { error, declared, before := if reachesFurther step.command !declared.isEmpty then some step.before.env else none }

/-- The error that concerns a declaration of the whole text's environment. -/
def concerning (troubles : Array Trouble) (env : Environment) (name : Name) : Option Note :=
  if troubles.isEmpty || !env.contains name then none else
  let resting := (ownClosure env [name]).own
  (troubles.find? fun trouble => resting.any trouble.declared.contains
    || (trouble.before.map fun before => !before.contains name).getD false).map (·.error)

/-- Where a text last seems to declare something of this name, in bytes: behind it none is to come. -/
def lastDeclared (text name : String) : Nat := Id.run do
  let word := (name.splitOn ".").getLast?.getD name
  if word == "" then return text.utf8ByteSize
  let isPart (c : Char) := c.isAlphanum || c == '_' || c == '\''
  let words := ["theorem", "lemma", "def", "instance", "abbrev"]
  let first :: rest := text.splitOn word | return 0
  let mut (at_, last, before) := (first.utf8ByteSize, 0, first)
  for piece in rest do
    at_ := at_ + word.utf8ByteSize
    let back := (before.toList.reverse.dropWhile fun c => !c.isWhitespace).dropWhile Char.isWhitespace
    let declaring := textOf (back.takeWhile fun c => !c.isWhitespace).reverse
    let isWhole := piece.isEmpty || !isPart piece.front
    if isWhole && (back.isEmpty || words.any fun one => declaring.endsWith one) then last := at_
    at_ := at_ + piece.utf8ByteSize
    before := piece
  return last

/-! ## Declarations as data -/

/-- The parts that exported declarations are made of; an item refers to earlier items only. -/
structure Arena where
  names : Std.HashMap Name Nat := {}
  nameItems : Array Json := #[]
  levels : Std.HashMap Level Nat := {}
  levelItems : Array Json := #[]
  seen : Std.HashMap USize Nat := {}
  exprs : Std.HashMap String Nat := {}
  exprItems : Array Json := #[]
  alive : Array Expr := #[]
  declarations : Array Json := #[]
  declared : Array Name := #[]
  hole : Bool := false

abbrev Export := StateM Arena

def putName (name : Name) : Export Nat := do
  match name with
  | .anonymous => return 0
  | .str parent _ | .num parent _ =>
    if let some n := (← get).names[name]? then return n
    let above ← putName parent
    let part := match name with
      | .num _ n => object [("num", Json.str (toString n))]
      | .str _ text => Json.str text
      | .anonymous => .null
    modifyGet fun s => (s.nameItems.size + 1, { s with
      names := s.names.insert name (s.nameItems.size + 1), nameItems := s.nameItems.push (.arr #[toJson above, part]) })

partial def putLevel (level : Level) : Export Nat := do
  if let some n := (← get).levels[level]? then return n
  let item : Array Json ← match level with
    | .zero => pure #[toJson 0]
    | .succ l => pure #[toJson 1, toJson (← putLevel l)]
    | .max a b => pure #[toJson 2, toJson (← putLevel a), toJson (← putLevel b)]
    | .imax a b => pure #[toJson 3, toJson (← putLevel a), toJson (← putLevel b)]
    | .param name => pure #[toJson 4, toJson (← putName name)]
    | .mvar _ => do
      modify fun s => { s with hole := true }
      pure #[toJson 0]
  modifyGet fun s => (s.levelItems.size, { s with
    levels := s.levels.insert level s.levelItems.size, levelItems := s.levelItems.push (.arr item) })

private def putItem (item : Array Json) : Export Nat := modifyGet fun s =>
  let key := (Json.arr item).compress
  match s.exprs[key]? with
  | some n => (n, s)
  | none => (s.exprItems.size, { s with exprs := s.exprs.insert key s.exprItems.size, exprItems := s.exprItems.push (.arr item) })

private unsafe def putExprUnsafe (e : Expr) : Export Nat := do
  let address := ptrAddrUnsafe e
  if let some n := (← get).seen[address]? then return n
  let digits (n : Nat) := Json.str (toString n)
  let n ← match e with
    | .bvar i => putItem #[toJson 0, digits i]
    | .sort l => do putItem #[toJson 1, toJson (← putLevel l)]
    | .const name levels => do
      let name ← putName name
      putItem #[toJson 2, toJson name, .arr ((← levels.mapM putLevel).toArray.map toJson)]
    | .app f a => do
      let left ← putExprUnsafe f
      putItem #[toJson 3, toJson left, toJson (← putExprUnsafe a)]
    | .lam _ type body info => do
      let domain ← putExprUnsafe type
      putItem #[toJson 4, toJson (binderNumber info), toJson domain, toJson (← putExprUnsafe body)]
    | .forallE _ type body info => do
      let domain ← putExprUnsafe type
      putItem #[toJson 5, toJson (binderNumber info), toJson domain, toJson (← putExprUnsafe body)]
    | .letE _ type value body _ => do
      let a ← putExprUnsafe type
      let b ← putExprUnsafe value
      putItem #[toJson 6, toJson a, toJson b, toJson (← putExprUnsafe body)]
    | .lit (.natVal n) => putItem #[toJson 7, digits n]
    | .lit (.strVal text) => putItem #[toJson 8, Json.str text]
    | .mdata _ inner => putExprUnsafe inner
    | .proj name i inner => do
      let name ← putName name
      let part ← putExprUnsafe inner
      putItem #[toJson 9, toJson name, digits i, toJson part]
    | .fvar _ | .mvar _ => do
      modify fun s => { s with hole := true }
      putItem #[toJson 1, toJson (← putLevel .zero)]
  modify fun s => { s with seen := s.seen.insert address n, alive := s.alive.push e }
  return n

@[implemented_by putExprUnsafe]
opaque putExpr (e : Expr) : Export Nat

def putDeclaration (env : Environment) (info : ConstantInfo) (withProof : Bool) : Export Unit := do
  let params := Json.arr ((← info.levelParams.mapM putName).toArray.map toJson)
  let json ← match info with
    | .inductInfo details => do
      let types ← details.all.mapM fun name => do
        let some (.inductInfo one) := env.find? name | return Json.null
        let constructors ← one.ctors.mapM fun ctor => do
          let some found := env.find? ctor | return Json.null
          return object [("name", toJson (← putName ctor)), ("type", toJson (← putExpr found.type))]
        return object [("name", toJson (← putName name)), ("type", toJson (← putExpr one.type)), ("constructors", .arr constructors.toArray)]
      pure (object [
        ("kind", "inductive"), ("params", params), ("count", Json.str (toString details.numParams)), ("unsafe", details.isUnsafe),
        ("types", .arr types.toArray)])
    | _ => do
      let value : Option Expr := match info with
        | .defnInfo details => some details.value
        | .thmInfo details => if withProof then some details.value else none
        | .opaqueInfo details => some details.value
        | _ => none
      let hints : Int := match info with
        | .defnInfo details => match details.hints with
          | .opaque => -2
          | .abbrev => -1
          | .regular height => height.toNat
        | _ => 0
      let valueJson ← match value with
        | some value => do pure (toJson (← putExpr value))
        | none => pure Json.null
      pure (object [
        ("kind", kindName info), ("name", toJson (← putName info.name)), ("params", params), ("type", toJson (← putExpr info.type)),
        ("value", valueJson), ("hints", toJson hints), ("unsafe", info.isUnsafe || info.isPartial)])
  let names := match info with
    | .inductInfo details => details.all.toArray
    | _ => #[info.name]
  modify fun s => { s with declarations := s.declarations.push json, declared := s.declared ++ names }

/-- Whether a constant is of a module that a judge imports too: not of the text, nor of its project. -/
def isLibrary (env : Environment) (own : NameSet) (name : Name) : Bool :=
  match env.getModuleIdxFor? name with
  | some index => own.isEmpty || !own.contains (env.allImportedModuleNames[index.toNat]?.getD .anonymous)
  | none => false

/-- What some names rest on, what is needed before what needs it; `done` are names that are there already. -/
partial def collect (env : Environment) (own : NameSet) (withProofs : Bool) (name : Name) (done : NameSet) : Export NameSet := do
  if done.contains name || isLibrary env own name then return done
  let some info := env.find? name | return done
  match info with
  | .ctorInfo details => collect env own withProofs details.induct (done.insert name)
  | .recInfo details => details.all.foldlM (fun done other => collect env own withProofs other done) (done.insert name)
  | .inductInfo details =>
    let mut done := done
    let mut needs := #[]
    for other in details.all do
      done := done.insert other
      if let some (.inductInfo one) := env.find? other then
        needs := needs ++ one.type.getUsedConstants
        for ctor in one.ctors do
          done := done.insert ctor
          if let some found := env.find? ctor then needs := needs ++ found.type.getUsedConstants
    for need in needs do done ← collect env own withProofs need done
    putDeclaration env info true
    return done
  | _ =>
    let withProof := withProofs || !(info matches .thmInfo _)
    let needs := if withProof then dependencies info else info.type.getUsedConstants
    let mut done := done.insert name
    for need in needs do done ← collect env own withProofs need done
    putDeclaration env info withProof
    return done

/-- Declarations as data, `whole` with proofs, `stated` without; and the names of what is declared there. -/
def exported (env : Environment) (own : NameSet) (whole stated : Array Name) : Except String (Json × Array Name) :=
  let work : Export Unit := do
    let mut done : NameSet := {}
    for name in whole do done ← collect env own true name done
    for name in stated do done ← collect env own false name done
  let (_, arena) := work.run {}
  if arena.hole then .error "a term has a hole"
  else .ok (object [
    ("names", .arr arena.nameItems), ("levels", .arr arena.levelItems), ("exprs", .arr arena.exprItems),
    ("declarations", .arr arena.declarations)], arena.declared)

/-! ## The judge: rulings on data that other processes hand over

One of them has read a candidate, one the original. This one has read nothing: it imports the library and
the packages, and not what is the project's own. Nothing of the data is run. It is decoded, compared,
audited, and given to the kernel on the bare imports. What the project's modules declare is part of the
data, like the text's own.
-/

/-- Why a candidate is not accepted: a stable reason and one line. -/
structure Refusal where
  reason : String
  detail : String
  axioms : Array String := #[]

abbrev J := ExceptT Refusal M

def refuse (reason detail : String) : J α := throw { reason, detail }
def badData (detail : String) : J α := refuse "data" detail

structure Declared where
  kind : String
  name : Name
  params : List Name
  type : Expr
  value : Option Expr
  hints : Int
  isUnsafe : Bool
  count : Nat := 0
  types : List InductiveType := []
  deriving Inhabited

def mostItems : Nat := 4000000
def mostDigits : Nat := 100000
def mostText : Nat := 1000000
def mostLevels : Nat := 1000
def largestLevel : Nat := 2000
def deepest : Nat := 20000

def dataList (data : Json) (key : String) (most : Nat) : J (Array Json) := do
  match data.getObjVal? key with
  | .ok (.arr items) => if items.size > most then badData s!"the data has more than {most} {key}" else return items
  | _ => badData s!"the data has no {key}"

def dataItem (json : Json) (size : Nat) (most : Nat) : J (Array Json) := do
  match json with
  | .arr items =>
    if items.size >= size && items.size <= most then return items else badData "the data has an item of another shape"
  | _ => badData "the data has an item of no kind"

def dataNumber (json : Json) : J Nat := do
  match json.getNat? with
  | .ok n => return n
  | .error _ => badData "the data refers to what is not there"

def dataIndex (items : Array α) (json : Json) : J α := do
  match items[← dataNumber json]? with
  | some item => return item
  | none => badData "the data refers to what is not there"

def dataDigits (json : Json) (most : Nat) : J Nat := do
  match json with
  | .str text =>
    let isPlain := text.length > 0 && text.length <= most && text.all Char.isDigit && (text == "0" || !text.startsWith "0")
    match isPlain, text.toNat? with
    | true, some n => return n
    | _, _ => badData "the data has a number that is none"
  | _ => badData "the data has a number that is none"

def dataText (json : Json) : J String := do
  match json with
  | .str text => if text.length > mostText then badData "the data has a text that is none" else return text
  | _ => badData "the data has a text that is none"

def dataBinder (json : Json) : J BinderInfo := do
  match ← dataNumber json with
  | 0 => return .default
  | 1 => return .implicit
  | 2 => return .strictImplicit
  | 3 => return .instImplicit
  | _ => badData "the data has a binder that is none"

def rootOf : Name → Name
  | .anonymous => .anonymous
  | name@(.str .anonymous _) => name
  | name@(.num .anonymous _) => name
  | .str parent _ => rootOf parent
  | .num parent _ => rootOf parent

def decodeNames (data : Json) : J (Array Name) := do
  let mut names := #[Name.anonymous]
  for item in ← dataList data "names" mostItems do
    let parts ← dataItem item 2 2
    let parent ← dataIndex names parts[0]!
    let name ← match parts[1]! with
      | .str text => if text.length > mostText then badData "the data has a text that is none" else pure (Name.str parent text)
      | other => match other.getObjVal? "num" with
        | .ok digits => do pure (Name.num parent (← dataDigits digits 10))
        | .error _ => badData "the data has a name that is none"
    -- The kernel makes names that begin so for itself while it takes a nested inductive type apart.
    if rootOf name == `_nested then badData "the data has a name that is the kernel's own"
    names := names.push name
  return names

def decodeLevels (data : Json) (names : Array Name) : J (Array Level) := do
  let mut levels : Array Level := #[]
  let mut sizes : Array Nat := #[]
  for item in ← dataList data "levels" mostItems do
    let parts ← dataItem item 1 3
    let shape ← dataNumber parts[0]!
    unless parts.size == [1, 2, 3, 3, 2][shape]?.getD 0 do badData "the data has an item of another shape"
    let part (i : Nat) : J Level := dataIndex levels parts[i]!
    let size (i : Nat) : J Nat := dataIndex sizes parts[i]!
    let (level, own) ← match shape with
      | 0 => pure (Level.zero, 1)
      | 1 => do pure (Level.succ (← part 1), 1 + (← size 1))
      | 2 => do pure (Level.max (← part 1) (← part 2), 1 + (← size 1) + (← size 2))
      | 3 => do pure (Level.imax (← part 1) (← part 2), 1 + (← size 1) + (← size 2))
      | _ => do pure (Level.param (← dataIndex names parts[1]!), 1)
    if own > largestLevel then badData "the data has a universe level that is too large"
    levels := levels.push level
    sizes := sizes.push own
  return levels

def decodeExprs (data : Json) (names : Array Name) (levels : Array Level) : J (Array Expr) := do
  let mut exprs : Array Expr := #[]
  let mut depths : Array Nat := #[]
  for item in ← dataList data "exprs" mostItems do
    let parts ← dataItem item 2 4
    let shape ← dataNumber parts[0]!
    unless parts.size == [2, 2, 3, 3, 4, 4, 4, 2, 2, 4][shape]?.getD 0 do badData "the data has an item of another shape"
    let part (i : Nat) : J Expr := dataIndex exprs parts[i]!
    let children : List Nat := [[], [], [], [1, 2], [2, 3], [2, 3], [1, 2, 3], [], [], [3]][shape]?.getD []
    let mut depth := 0
    for child in children do depth := Nat.max depth (← dataIndex depths parts[child]!)
    if depth + 1 > deepest then badData s!"the data has a term deeper than {deepest}"
    let e ← match shape with
      | 0 => do pure (mkBVar (← dataDigits parts[1]! 6))
      | 1 => do pure (mkSort (← dataIndex levels parts[1]!))
      | 2 => do
        let name ← dataIndex names parts[1]!
        let given ← dataItem parts[2]! 0 mostLevels
        pure (mkConst name (← given.toList.mapM (dataIndex levels ·)))
      | 3 => do pure (mkApp (← part 1) (← part 2))
      | 4 => do pure (.lam .anonymous (← part 2) (← part 3) (← dataBinder parts[1]!))
      | 5 => do pure (.forallE .anonymous (← part 2) (← part 3) (← dataBinder parts[1]!))
      | 6 => do pure (.letE .anonymous (← part 1) (← part 2) (← part 3) false)
      | 7 => do pure (.lit (.natVal (← dataDigits parts[1]! mostDigits)))
      | 8 => do pure (.lit (.strVal (← dataText parts[1]!)))
      | _ => do pure (.proj (← dataIndex names parts[1]!) (← dataDigits parts[2]! 6) (← part 3))
    exprs := exprs.push e
    depths := depths.push (depth + 1)
  return exprs

def decode (data : Json) : J (Array Declared) := do
  let names ← decodeNames data
  let levels ← decodeLevels data names
  let exprs ← decodeExprs data names levels
  let bad {α} : J α := badData "the data has a declaration that is none"
  let get (json : Json) (key : String) : J Json := match json.getObjVal? key with | .ok value => pure value | .error _ => bad
  let named (json : Json) : J Name := do
    let name ← dataIndex names json
    if name.isAnonymous then badData "the data has a declaration without a name" else return name
  let closed (json : Json) : J Expr := do
    let e ← dataIndex exprs json
    if e.looseBVarRange > 0 then badData "the data has a declaration with a loose variable" else return e
  (← dataList data "declarations" 100000).mapM fun json => do
    let kind ← dataText (← get json "kind")
    let isUnsafe ← match ← get json "unsafe" with | .bool flag => pure flag | _ => bad
    let params ← (← dataItem (← get json "params") 0 9999).toList.mapM named
    if kind == "inductive" then
      let types ← (← dataItem (← get json "types") 1 9999).toList.mapM fun type => do
        let ctors ← (← dataItem (← get type "constructors") 0 9999).toList.mapM fun ctor => do
          return { name := ← named (← get ctor "name"), type := ← closed (← get ctor "type") : Constructor }
        return { name := ← named (← get type "name"), type := ← closed (← get type "type"), ctors : InductiveType }
      let count ← dataDigits (← get json "count") 6
      return { kind, name := types.head!.name, params, type := types.head!.type, value := none, hints := 0, isUnsafe, count, types }
    unless ["axiom", "def", "theorem", "opaque"].contains kind do bad
    let value ← match ← get json "value" with
      | .null => if kind == "axiom" || kind == "theorem" then pure none else bad
      | given => if kind == "axiom" then bad else do pure (some (← closed given))
    let hints ← match (← get json "hints").getInt? with
      | .ok n => if n < -2 || n > 0xffffffff then bad else pure n
      | .error _ => bad
    return { kind, name := ← named (← get json "name"), params, type := ← closed (← get json "type"), value, hints, isUnsafe }

/-- Where constants are declared, and as which part of a declaration. -/
abbrev Index := Std.HashMap Name (Nat × String)

def indexOf (list : Array Declared) : J Index := do
  let mut index : Index := {}
  for declared in list, i in [0:list.size] do
    let names := if declared.kind == "inductive"
      then declared.types.foldr (init := []) fun type rest => (type.name, "type") :: type.ctors.map (fun ctor => (ctor.name, "constructor")) ++ rest
      else [(declared.name, "whole")]
    for (name, part) in names do
      if index.contains name then badData "a name is declared twice"
      index := index.insert name (i, part)
  return index

/-! ### The kernel -/

/-- What the kernel says against a declaration; `fault` is set if it is no verdict. -/
def kernelRefusal : KernelError → Refusal
  | .unknownConstant .. => ⟨"kernel", "it mentions an unknown constant", #[]⟩
  | .alreadyDeclared .. => ⟨"kernel", "its name is taken", #[]⟩
  | .declTypeMismatch .. => ⟨"kernel", "its value has another type", #[]⟩
  | .other text => ⟨"kernel", ((text.splitOn "\n").headD "refused").take 200 |> toString, #[]⟩
  | .deterministicTimeout => ⟨"timeout", "a limit of the kernel was reached", #[]⟩
  | .interrupted => ⟨"timeout", "interrupted", #[]⟩
  | .excessiveMemory => ⟨"lost", "it needs too much memory", #[]⟩
  | .deepRecursion => ⟨"lost", "it is too deep", #[]⟩
  | .appTypeMismatch .. => ⟨"kernel", "an argument has another type", #[]⟩
  | .invalidProj .. => ⟨"kernel", "a projection is not valid", #[]⟩
  | .thmTypeIsNotProp .. => ⟨"kernel", "a theorem must prove a proposition", #[]⟩
  | _ => ⟨"kernel", "a term has another type than expected", #[]⟩

def isFault (refusal : Refusal) : Bool := refusal.reason == "timeout" || refusal.reason == "lost"

/-- A declaration for the kernel. Always safe: what is not was refused before, or fails there. -/
def Declared.forKernel (d : Declared) : Declaration :=
  match d.kind, d.value with
  | "inductive", _ => .inductDecl d.params d.count d.types false
  | "theorem", some value => .thmDecl { name := d.name, levelParams := d.params, type := d.type, value, all := [d.name] }
  | "opaque", some value =>
    .opaqueDecl { name := d.name, levelParams := d.params, type := d.type, value, isUnsafe := false, all := [d.name] }
  | "def", some value =>
    let hints : ReducibilityHints := if d.hints == -2 then .opaque else if d.hints == -1 then .abbrev else .regular d.hints.toNat.toUInt32
    .defnDecl { name := d.name, levelParams := d.params, type := d.type, value, hints, safety := .safe, all := [d.name] }
  | _, _ => .axiomDecl { name := d.name, levelParams := d.params, type := d.type, isUnsafe := false }

def Declared.terms (d : Declared) : List Expr :=
  if d.kind == "inductive"
  then d.types.foldr (fun type rest => type.type :: (type.ctors.map (·.type) ++ rest)) []
  else d.type :: d.value.toList

def kernelTakes (env : KernelEnv) (d : Declared) : J KernelEnv := do
  match kernelAdd env d.forKernel (← theToken) with
  | .ok next => return next
  | .error error => throw (kernelRefusal error)

/-- Whether a term, inside binders, proves a proposition: the kernel says so about the closed term. -/
def provesProposition (env : Environment) (binders : List (Expr × Option Expr)) (e : Expr) : J Bool := do
  let closed := binders.foldl (init := e) fun body (type, value) =>
    match value with
    | none => .lam .anonymous type body .default
    | some value => .letE .anonymous type value body false
  if closed.looseBVarRange > 0 then return false
  let answer : Except KernelError Bool := do
    let type ← Kernel.check env {} closed
    let sort ← Kernel.check env {} type
    -- A function type is a proposition exactly if what it ends in is one.
    Kernel.isDefEq env {} sort (mkSort .zero)
  match answer with
  | .ok result => return result
  | .error error => if isFault (kernelRefusal error) then throw (kernelRefusal error) else return false

/-! ### Whether what a candidate declares means what the original says -/

structure Comparison where
  constants : Std.HashMap (Name × Name) Bool := {}
  unchanged : Std.HashMap Expr Bool := {}
  filled : Array Name := #[]
  partnerOfOriginal : NameMap Name := {}
  partnerOfCandidate : NameMap Name := {}
  holes : Nat := 0
  questions : Nat := 0
  different : Name := .anonymous
  originalEnv : Option Environment := none
  candidateEnv : Option Environment := none

structure Sides where
  original : Array Declared
  originalIndex : Index
  candidate : Array Declared
  candidateIndex : Index
  own : NameSet
  isImported : Name → Bool
  bare : KernelEnv

abbrev C := ReaderT Sides (StateRefT Comparison J)

/-- What the kernel takes of declarations, on the bare library; what it does not take is not part of what is proved. -/
def takenOf (bare : KernelEnv) (declarations : Array Declared) : J Environment := do
  let mut taken := bare
  for d in declarations do
    match kernelAdd taken d.forKernel (← theToken) with
    | .ok next => taken := next
    | .error error => if isFault (kernelRefusal error) then throw (kernelRefusal error)
  return environmentOf taken

/-- What each text's terms are asked about in; made when it is first needed. -/
def originalEnv : C Environment := do
  if let some env := (← get).originalEnv then return env
  let sides ← read
  let env ← (takenOf sides.bare sides.original : J Environment)
  modify fun s => { s with originalEnv := some env }
  return env

def candidateEnv : C Environment := do
  if let some env := (← get).candidateEnv then return env
  let sides ← read
  let env ← (takenOf sides.bare sides.candidate : J Environment)
  modify fun s => { s with candidateEnv := some env }
  return env

def mostQuestions : Nat := 400

def isAuxiliaryPart (part : String) : Bool :=
  part.startsWith "_" || ["match", "proof", "eq", "omega", "unary", "mutual", "sunfold", "def"].any fun stem =>
    part.startsWith (stem ++ "_") && part.length > stem.length + 1 && (part.toList.drop (stem.length + 1)).all Char.isDigit

def isAuxiliary (name : Name) : Bool :=
  (components (userName name)).any fun part => match part with | .str _ text => isAuxiliaryPart text | _ => false

def isRecursorPart (part : String) : Bool :=
  part == "rec" || (part.startsWith "rec_" && part.length > 4 && (part.toList.drop 4).all Char.isDigit)

/-- Where a constant is declared: itself, or the inductive type that its recursor belongs to. -/
def whereIs (index : Index) (name : Name) : Option (Nat × String) :=
  match index[name]? with
  | some entry => some entry
  | none => match name with
    | .str parent part =>
      if isRecursorPart part then (index[parent]?).bind fun (i, kind) => if kind == "type" then some (i, kind) else none else none
    | _ => none

def isHole (e : Expr) : Bool := e.getAppFn.isConstOf ``sorryAx

/-- Whether an auxiliary declaration may have another name; see meaning.js for why these. -/
def mayStandFor (o c : Name) : C Bool := do
  let sides ← read
  let s ← get
  if !isAuxiliary o || !isAuxiliary c || sides.own.contains o || sides.own.contains c then return false
  if ((s.partnerOfOriginal.find? o).getD c) != c || ((s.partnerOfCandidate.find? c).getD o) != o then return false
  match (sides.originalIndex[o]?).bind fun (i, _) => sides.original[i]? with
  | some declared =>
    if declared.kind == "theorem" then return true
    if declared.kind != "def" then return false
    modify fun s => { s with partnerOfOriginal := s.partnerOfOriginal.insert o c, partnerOfCandidate := s.partnerOfCandidate.insert c o }
    return true
  | none => return false

mutual
partial def sameConstant (o c : Name) : C Bool := do
  if o == c && (← read).isImported o then return true
  if o != c then unless ← mayStandFor o c do return false
  if let some known := (← get).constants[(o, c)]? then return known
  modify fun s => { s with constants := s.constants.insert (o, c) true } -- an inductive type mentions itself
  let result ← sameEntry o c
  unless result do -- what was found equal by assuming this may not be
    modify fun s => { s with
      different := if s.different.isAnonymous then o else s.different
      constants := s.constants.fold (fun kept pair same => if same then kept else kept.insert pair false) {}, unchanged := {} }
  modify fun s => { s with constants := s.constants.insert (o, c) result }
  return result

partial def sameEntry (o c : Name) : C Bool := do
  let sides ← read
  match whereIs sides.originalIndex o, whereIs sides.candidateIndex c with
  | some (i, part), some (j, other) =>
    if part != other then return false
    let (first, second) := (sides.original[i]!, sides.candidate[j]!)
    if part == "whole" then
      let before := (← get).holes
      unless ← sameDeclaration first second do return false
      return o == c || (← get).holes == before || first.kind == "theorem"
    if o != c then return false
    sameInductive first second
  | _, _ => return false

partial def sameInductive (a b : Declared) : C Bool := do
  unless a.kind == b.kind && a.count == b.count && a.isUnsafe == b.isUnsafe && a.params == b.params && a.types.length == b.types.length do
    return false
  for (t, u) in a.types.zip b.types do
    unless t.name == u.name && t.ctors.length == u.ctors.length do return false
    unless ← sameTerm t.type u.type t.name [] do return false
    for (x, y) in t.ctors.zip u.ctors do
      unless x.name == y.name do return false
      unless ← sameTerm x.type y.type t.name [] do return false
  return true

/-- Of theorems the statements, of definitions the values too. -/
partial def sameDeclaration (a b : Declared) : C Bool := do
  unless a.kind == b.kind && a.isUnsafe == b.isUnsafe && a.params == b.params do return false
  unless ← sameTerm a.type b.type a.name [] do return false
  if a.kind == "theorem" || a.kind == "axiom" then return true
  match a.value, b.value with
  | some x, some y => sameTerm x y a.name []
  | _, _ => return false

/-- Whether every constant in a term means the same in both texts. -/
partial def isUnchanged (e : Expr) : C Bool := do
  if let some known := (← get).unchanged[e]? then return known
  let mut result := true
  for name in e.getUsedConstants do
    if result then result ← sameConstant name name
  modify fun s => { s with unchanged := s.unchanged.insert e result }
  return result

/-- `binders`: what stands around both terms, innermost first, for the original and the candidate. -/
partial def sameTerm (o c : Expr) (owner : Name) (binders : List ((Expr × Option Expr) × (Expr × Option Expr))) : C Bool := do
  if o.equal c then if ← isUnchanged o then return true
  if isHole o then
    modify fun s => { s with holes := s.holes + 1, filled := if s.filled.contains owner then s.filled else s.filled.push owner }
    return true
  if ← sameParts o c owner binders then return true
  -- Two proofs in one place prove the same proposition: the kernel does not tell them apart.
  modify fun s => { s with questions := s.questions + 2 }
  if (← get).questions > mostQuestions then return false
  unless ← (provesProposition (← originalEnv) (binders.map (·.1)) o : J Bool) do return false
  (provesProposition (← candidateEnv) (binders.map (·.2)) c : J Bool)

partial def sameParts (o c : Expr) (owner : Name) (binders : List ((Expr × Option Expr) × (Expr × Option Expr))) : C Bool := do
  match o, c with
  | .const a us, .const b vs => if us == vs then sameConstant a b else return false
  | .app .., .app .. =>
    let (first, second) := (o.getAppArgs, c.getAppArgs)
    unless first.size == second.size do return false
    unless ← sameTerm o.getAppFn c.getAppFn owner binders do return false
    for x in first, y in second do
      unless ← sameTerm x y owner binders do return false
    return true
  | .lam _ s x i, .lam _ t y j | .forallE _ s x i, .forallE _ t y j =>
    unless i == j do return false
    unless ← sameTerm s t owner binders do return false
    sameTerm x y owner (((s, none), (t, none)) :: binders)
  | .letE _ s v x _, .letE _ t w y _ =>
    unless ← sameTerm s t owner binders do return false
    unless ← sameTerm v w owner binders do return false
    sameTerm x y owner (((s, some v), (t, some w)) :: binders)
  | .proj a i x, .proj b j y =>
    unless i == j do return false
    unless ← sameConstant a b do return false
    sameTerm x y owner binders
  | _, _ => return o.equal c
end

/-! ### What targets rest on, and whether it may be rested on -/

structure Rests where
  needed : Std.HashSet Nat := {}
  imported : NameSet := {}
  seen : NameSet := {}

structure Matter where
  sides : Sides
  base : Environment
  bare : KernelEnv
  elsewhere : NameSet
  allowed : Array Name
  comparison : Comparison

def plainName (name : Name) : String := (userName name).toString (escape := false)

/-- The structures that projections are out of. -/
partial def projected (e : Expr) (soFar : Std.HashSet Expr × List Name) : Std.HashSet Expr × List Name :=
  if soFar.1.contains e then soFar else
  let (seen, names) := soFar
  let soFar := (seen.insert e, names)
  match e with
  | .proj name _ inner => projected inner (soFar.1, name :: soFar.2)
  | .app f a => projected a (projected f soFar)
  | .lam _ t b _ | .forallE _ t b _ => projected b (projected t soFar)
  | .letE _ t v b _ => projected b (projected v (projected t soFar))
  | _ => soFar

partial def closure (matter : Matter) (todo : List Name) (soFar : Rests := {}) : J Rests := do
  match todo with
  | [] => return soFar
  | name :: rest =>
    if soFar.seen.contains name then return ← closure matter rest soFar
    let soFar := { soFar with seen := soFar.seen.insert name }
    if matter.sides.isImported name then
      return ← closure matter rest { soFar with imported := soFar.imported.insert name }
    match whereIs matter.sides.candidateIndex name with
    | none => refuse "missing" s!"it rests on {plainName name}, which is not declared"
    | some (i, _) =>
      if soFar.needed.contains i then return ← closure matter rest soFar
      let declared := matter.sides.candidate[i]!
      if declared.kind == "theorem" && declared.value.isNone then badData s!"{plainName name} came without its proof"
      let constants := declared.terms.foldl (fun list e => e.getUsedConstants.toList ++ list) []
      let structures := (declared.terms.foldl (fun soFar e => projected e soFar) ({}, [])).2
      closure matter (constants ++ structures ++ rest) { soFar with needed := soFar.needed.insert i }

/-- Whose `sorry` it is: declarations of the text, or else one that it imports. -/
def whoseSorry (matter : Matter) (needed : Array Declared) : String :=
  let left := needed.filter fun d => d.terms.any fun e => e.getUsedConstants.contains ``sorryAx
  let own := (left.filter fun d => matter.sides.own.contains d.name).map fun d => plainName d.name
  if own.isEmpty then
    match left[0]? with
    | some d => s!"the sorry of {plainName d.name}, which is not in this text"
    | none => "sorry"
  else s!"the sorry of {String.intercalate ", " own.toList}"

/-- The axioms that targets rest on, all of them allowed. -/
def audit (matter : Matter) (rests : Rests) (needed : Array Declared) : C (Array String) := do
  let mut found : NameSet := {}
  let mut outside := #[]
  if rests.imported.contains ``sorryAx then (refuse "sorry" s!"it rests on {whoseSorry matter needed}" : J Unit)
  for d in needed do
    let shown := plainName d.name
    if d.isUnsafe then (refuse "unsafe" s!"it rests on {shown}, which is unsafe" : J Unit)
    let isOriginal := matter.sides.originalIndex.contains d.name
    if d.kind == "axiom" then
      if matter.allowed.contains d.name && isOriginal then
        found := found.insert d.name
        unless ← sameConstant d.name d.name do (refuse "statement" s!"{shown} says something else now" : J Unit)
      else outside := outside.push shown
    if d.kind == "opaque" then
      let isSame ← if isOriginal then sameConstant d.name d.name else pure false
      unless isSame do (refuse "unsafe" s!"it rests on {shown}, which is opaque and not the original's" : J Unit)
    if matter.elsewhere.contains d.name then
      (refuse "unsafe" s!"it rests on {shown}, which has another implementation" : J Unit)
  unless outside.isEmpty do
    let list := sorted outside
    let several := if list.size > 1 then "the axioms" else "the axiom"
    throw { reason := "axiom", detail := s!"it rests on {several} {String.intercalate ", " list.toList}", axioms := list }
  let reached := restingOn matter.base rests.imported.toList
  for name in runsCode do
    if reached.visited.contains name then (refuse "unsafe" s!"it rests on {name}, which runs compiled code" : J Unit)
  for name in reached.axioms do
    unless matter.allowed.contains name do
      throw { reason := if name == ``sorryAx then "sorry" else "axiom", detail := s!"it rests on the axiom {name}", axioms := #[name.toString] }
    found := found.insert name
  for name in rests.imported.toList do
    if let some info := matter.base.find? name then
      if info.isUnsafe || info.isPartial then (refuse "unsafe" s!"it rests on {name}, which is unsafe" : J Unit)
  return sorted (shownNames (found.toList.toArray))

/-! ### What older kernels take on trust; see hardening.js -/

/-- Whether a universe level is above zero whatever its parameters are. -/
partial def isPositive : Level → Bool
  | .succ _ => true
  | .max a b => isPositive a || isPositive b
  | .imax _ b => isPositive b
  | _ => false

/-- The universe an inductive type is in, as it is written. -/
partial def writtenUniverse : Expr → Option Level
  | .forallE _ _ body _ => writtenUniverse body
  | .sort level => some level
  | _ => none

/-- Whether a structure is a proposition; refused if that cannot be seen. -/
def isSuspect (checked : KernelEnv) (structure_ : Name) : J Bool := do
  match (kernelFind? checked structure_).bind fun info => writtenUniverse info.type with
  | some .zero => return true
  | some level => if isPositive level then return false else doubt
  | none => doubt
where
  doubt {α} : J α := refuse "kernel" "it has a projection out of what may be a proposition"

structure Projections where
  holding : Std.HashMap Expr Bool := {}
  done : Std.HashSet Expr := {}
  count : Nat := 0

abbrev H := StateRefT Projections J

/-- Whether a projection out of a proposition is somewhere in a term. -/
partial def holds (checked : KernelEnv) (e : Expr) : H Bool := do
  if let some known := (← get).holding[e]? then return known
  let here ← match e with
    | .proj name _ inner => do
      let suspect ← (isSuspect checked name : J Bool)
      let below ← holds checked inner
      pure (suspect || below)
    | .app f a => do
      let left ← holds checked f
      pure (left || (← holds checked a))
    | .lam _ t b _ | .forallE _ t b _ => do
      let left ← holds checked t
      pure (left || (← holds checked b))
    | .letE _ t v b _ => do
      let left ← holds checked t
      let middle ← holds checked v
      pure (left || middle || (← holds checked b))
    | .mdata _ inner => holds checked inner
    | _ => pure false
  modify fun s => { s with holding := s.holding.insert e here }
  return here

partial def checkProjections (checked : KernelEnv) (whole : Environment) (e : Expr) (binders : List (Expr × Option Expr)) : H Unit := do
  unless ← holds checked e do return
  if e.looseBVarRange == 0 then
    if (← get).done.contains e then return
    modify fun s => { s with done := s.done.insert e }
  match e with
  | .proj name _ inner =>
    if ← (isSuspect checked name : J Bool) then
      modify fun s => { s with count := s.count + 1 }
      if (← get).count > 2000 then (refuse "kernel" "it has too many projections out of propositions" : J Unit)
      unless ← (provesProposition whole binders e : J Bool) do (refuse "kernel" "data is projected out of a proposition" : J Unit)
    checkProjections checked whole inner binders
  | .app f a => checkProjections checked whole f binders; checkProjections checked whole a binders
  | .lam _ t b _ | .forallE _ t b _ =>
    checkProjections checked whole t binders
    checkProjections checked whole b ((t, none) :: binders)
  | .letE _ t v b _ =>
    checkProjections checked whole t binders
    checkProjections checked whole v binders
    checkProjections checked whole b ((t, some v) :: binders)
  | .mdata _ inner => checkProjections checked whole inner binders
  | _ => return

def checkInductive (checked : KernelEnv) (whole : Environment) (d : Declared) : J Unit := do
  for (name, type) in d.types.foldr (fun t rest => (t.name, t.type) :: (t.ctors.map fun c => (c.name, c.type)) ++ rest) [] do
    match kernelFind? checked name with
    | some info => unless info.type == type do refuse "kernel" s!"the kernel has another {plainName name}"
    | none => refuse "kernel" s!"the kernel has no {plainName name}"
    match Kernel.check whole {} type with
    | .ok _ => pure ()
    | .error error => throw (kernelRefusal error)

/-- Says about which declaration something is refused. -/
def naming (name : Name) (work : J α) : J α :=
  tryCatch work fun refusal =>
    throw (if refusal.reason == "kernel" || isFault refusal then { refusal with detail := s!"{plainName name}: {refusal.detail}" } else refusal)

/-! ### Ruling -/

def prepare (base : Environment) (json : Json) (names : Array Name) (allowed : Array Name) : J Matter := do
  let bare := kernelOf base
  let isImported (name : Name) : Bool := (kernelFind? bare name).isSome
  if let some missing := kernelNames.find? fun name => !isImported name then
    refuse "original" s!"the original imports less than Init: {missing} is missing, with which the kernel computes"
  let part (key : String) : Json := (json.getObjVal? key).toOption.getD .null
  let candidate ← decode (part "data")
  for d in candidate do
    for type in d.types do
      if (writtenUniverse type.type).isNone then refuse "kernel" s!"{plainName type.name} is in a universe that is not written down"
  let original ← decode (part "original")
  let sides : Sides := {
    original, originalIndex := ← indexOf original, candidate, candidateIndex := ← indexOf candidate
    own := names.foldl (·.insert ·) {}, isImported, bare }
  let compare : C Unit := do
    for name in names do
      unless ← sameConstant name name do
        unless sides.candidateIndex.contains name do (refuse "missing" s!"{plainName name} is not declared any more" : J Unit)
        let cause := (← get).different
        let why := if cause == name || cause.isAnonymous then "" else s!": {plainName cause}, which it mentions, is not the original's"
        (refuse "statement" s!"{plainName name} says something else now{why}" : J Unit)
  let (_, comparison) ← (compare.run sides).run {}
  let elsewhere := (listField json "implemented").foldl (fun set name => set.insert (nameOfData name)) {}
  return { sides, base, bare, elsewhere, allowed, comparison }

/-- The name that a target gives: data, or a text, perhaps private to the candidate. -/
def targetName (matter : Matter) (target : Json) : J Name := do
  match target with
  | .str text =>
    let plain := text.toName
    let forms := [plain, mkPrivateName matter.base plain]
    match forms.find? fun name => matter.sides.candidateIndex.contains name with
    | some name => return name
    | none => refuse "missing" s!"{text} is not declared"
  | _ => return nameOfData target

def decide (matter : Matter) (targets : Array Json) : J (List (String × Json)) := do
  let asked ← targets.mapM (targetName matter)
  let rests ← closure matter asked.toList
  let mut needed := #[]
  for d in matter.sides.candidate, i in [0:matter.sides.candidate.size] do
    if rests.needed.contains i then needed := needed.push d
  let (axioms, comparison) ← ((audit matter rests needed).run matter.sides).run matter.comparison
  let mut checked := matter.bare
  for d in needed do checked ← naming d.name (kernelTakes checked d)
  let whole := environmentOf checked
  for d in needed do
    naming d.name do
      if d.kind == "inductive" then checkInductive checked whole d
      let visit : H Unit := d.terms.forM fun e => checkProjections checked whole e []
      discard (visit.run {})
  for name in asked do
    unless (kernelFind? checked name).isSome do refuse "kernel" s!"the kernel has no {plainName name}"
  return [
    ("names", texts (asked.map plainName)), ("axioms", texts axioms),
    ("filled", texts (sorted (comparison.filled.map plainName))), ("constants", toJson needed.size)]

def ruling (outcome : Except Refusal (List (String × Json))) : Json :=
  match outcome with
  | .ok fields => object ([("reason", Json.str "proved"), ("detail", Json.str "")] ++ fields)
  | .error refusal => object [
    ("reason", refusal.reason), ("detail", refusal.detail), ("names", texts #[]), ("axioms", texts refusal.axioms),
    ("filled", texts #[]), ("constants", toJson 0)]

/-- The judge makes paths of these names: no part of one may lead elsewhere. -/
def isPlainModule (module : Name) : Bool :=
  !module.isAnonymous && (components module).all fun part => match part with
    | .str _ text => text != "" && text.all fun c => c != '/' && c != '\\' && c != '.' && c.toNat != 0
    | _ => false

/-- The library, and the packages, that an original imports; loaded once. -/
def openLibrary (modules : Array Name) : M Environment := do
  let host ← read
  if let some odd := modules.find? fun module => !isPlainModule module then throw (request s!"{odd} is no module of the library")
  let key := importKey modules
  if let some env := (← host.libraries.get)[key]? then return env
  let env ← (importBare (modules.map fun module => { module }) : IO _)
  let env := env.setMainModule `Main
  host.libraries.modify (·.insert key env)
  return env

def judge (json : Json) : M Json := do
  if ← (← read).hasRead.get then throw (request "this process has read texts: it does not judge")
  let targets := listField json "targets"
  let stated := (field? json "stated").map fun _ => listField json "stated"
  let compared := (stated.map fun names => (targets ++ names).map nameOfData).getD #[]
  let allowed := (textsField json "allowed").map String.toName
  let base ← openLibrary ((textsField json "library").map String.toName)
  let groups := if flagField json "separately" then targets.map fun target => #[target] else #[targets]
  match ← (prepare base json compared allowed).run with
  | .error refusal => return .arr (groups.map fun _ => ruling (.error refusal))
  | .ok matter => return .arr (← groups.mapM fun group => do return ruling (← (decide matter group).run))

/-! ## What may help with a goal; see survey.js

Statements are read as patterns, which are terms again: without universes, instances and names of bound variables,
every application that of a constant or of a mark. Variables of a pattern are metavariables by number. Matching is
first-order and lenient: it decides what is worth trying, and Lean what is true. -/

namespace Survey

def marks : Name := .num .anonymous 0

/-- Something that is no application of a constant: a binder, an application of a variable. -/
def mark (text : String) (args : Array Expr) : Expr := mkAppN (.const (.str marks text) []) args

def isMarked : Name → Bool
  | .num .anonymous 0 => true
  | .str parent _ | .num parent _ => isMarked parent
  | .anonymous => false

def isMark (e : Expr) (text : String) : Bool := e.getAppFn.isConstOf (.str marks text)
def isAnything (e : Expr) : Bool := isMark e "$@"

/-- What Lean will find. -/
def hole (name : Name) : Expr := .const (Name.str marks "?" ++ name) []

def isHole : Expr → Bool
  | .const name _ => (Name.str marks "?").isPrefixOf name
  | _ => false

def patternVariable (index : Nat) : Expr := .mvar ⟨.num .anonymous index⟩

/-- The constant at the head of a pattern, if it has one. -/
def headOf? (e : Expr) : Option Name :=
  match e.getAppFn with
  | .const name _ => if isMarked name then none else some name
  | _ => none

def isNumber (e : Expr) : Bool := e.isAppOf ``OfNat.ofNat || e.isRawNatLit

partial def size (e : Expr) : Nat := e.getAppArgs.foldl (fun sum arg => sum + size arg) 1

structure Use where
  name : String
  use : String
  args : Array String
  unmet : Nat
  loose : Nat
  fit : Nat
  met : Nat
  isLocal : Bool
  order : Nat
  size : Nat
  wrap : String := "%"
  back : Bool := false
  at_ : String := ""
  nth : Nat := 0
  whole : Bool := false
  gives : String := ""
  grows : Bool := false
  law : String := ""

abbrev S := StateRefT Known MetaM

def mostNodes : Nat := 600
def mostBinders : Nat := 24
def mostInstances : Nat := 4
def mostRead : Nat := 1500

def resultOf : Expr → Expr
  | .forallE _ _ body _ => resultOf body
  | .mdata _ inner => resultOf inner
  | e => e

def isPropSort (e : Expr) : Bool := e matches .sort .zero

def arrows : Expr → Nat
  | .forallE _ _ body _ => arrows body + 1
  | _ => 0

partial def binderInfos (type : Expr) (soFar : Array BinderInfo := #[]) : Array BinderInfo :=
  match type with
  | .forallE _ _ body info => binderInfos body (soFar.push info)
  | _ => soFar

def infosOf (name : Name) : S (Array BinderInfo) := do
  if let some known := (← get).binders[name]? then return known
  let found := ((← getEnv).find? name).elim #[] fun info => binderInfos info.type
  modify fun s => { s with binders := s.binders.insert name found }
  return found

/-- Whether applying the constant gives a proposition. -/
def isPredicate (name : Name) : S Bool := do
  if let some known := (← get).predicates[name]? then return known
  let found := ((← getEnv).find? name).any fun info => isPropSort (resultOf info.type)
  modify fun s => { s with predicates := s.predicates.insert name found }
  return found

def applied (name : Name) (args : Array Expr) : Expr :=
  let three := args.size == 3
  if three && name == ``GE.ge then mkAppN (.const ``LE.le []) #[args[0]!, args[2]!, args[1]!]
  else if three && name == ``GT.gt then mkAppN (.const ``LT.lt []) #[args[0]!, args[2]!, args[1]!]
  else if three && name == ``Ne then mkApp (.const ``Not []) (mkAppN (.const ``Eq []) args)
  else mkAppN (.const name []) args

/-- Reads a term below `count` binders whose variables are the pattern's. -/
partial def readPart (count : Nat) (e : Expr) (depth : Nat) : S Expr := do
  if (← get).budget == 0 then return mark "Sort" #[]
  modify fun s => { s with budget := s.budget - 1 }
  match e with
  | .bvar i => return if i < depth then e else patternVariable (count - 1 - (i - depth))
  | .fvar _ | .lit _ => return e
  | .mvar id => return hole id.name
  | .sort _ => return mark "Sort" #[]
  | .lam _ type body _ => return mark "λ" #[← readPart count type depth, ← readPart count body (depth + 1)]
  | .forallE _ type body _ => return mark "∀" #[← readPart count type depth, ← readPart count body (depth + 1)]
  | .letE _ _ value body _ => return mark "let" #[← readPart count value depth, ← readPart count body (depth + 1)]
  | .mdata _ inner => readPart count inner depth
  | .proj name i inner => return mkApp (.const (.num (marks ++ name) i) []) (← readPart count inner depth)
  | .const name _ => return applied name #[]
  | .app .. =>
    let args := e.getAppArgs
    match e.getAppFn with
    | .const name _ =>
      let infos ← infosOf name
      let mut kept := #[]
      for arg in args, i in [0:args.size] do
        unless infos[i]? == some .instImplicit do kept := kept.push (← readPart count arg depth)
      return applied name kept
    | head =>
      let head ← readPart count head depth
      return mark (if head.isMVar then "$@" else "@") (#[head] ++ (← args.mapM fun arg => readPart count arg depth))

/-- A term as a pattern; none if it is too large for one. -/
def readPattern (e : Expr) (count : Nat := 0) : S (Option Expr) := do
  modify fun s => { s with budget := mostNodes }
  let pattern ← readPart count e 0
  return if (← get).budget == 0 then none else some pattern

/-- Whether a type is a proposition as far as its head says; `makes`: which variables around it make propositions. -/
def proposes (type : Expr) (makes : Array Bool) (local_ : FVarId → Bool) : S Bool := do
  match (resultOf type).getAppFn with
  | .const name _ => isPredicate name
  | .fvar id => return local_ id
  | .bvar i =>
    let depth := arrows type
    return i >= depth && i - depth < makes.size && makes[makes.size - 1 - (i - depth)]!
  | _ => return false

/-- A negation is a lemma that concludes `False` from one more premise. -/
partial def readLemma (name : String) (type : Expr) (isLocal : Bool) (order : Nat) (local_ : FVarId → Bool := fun _ => false)
    (binders : Array Binder := #[]) (makes : Array Bool := #[]) : S (Option Lemma) := do
  match type with
  | .mdata _ inner => readLemma name inner isLocal order local_ binders makes
  | .forallE _ domain body info =>
    if binders.size >= mostBinders then return none
    let premise ← proposes domain makes local_
    let some pattern ← readPattern domain binders.size | return none
    readLemma name body isLocal order local_ (binders.push { info, type := pattern, premise }) (makes.push (isPropSort (resultOf domain)))
  | _ =>
    let some conclusion ← readPattern type binders.size | return none
    let says ← proposes type makes local_
    if conclusion.isAppOfArity ``Not 1 then
      let premise : Binder := { info := .default, type := conclusion.appArg!, premise := true }
      return some { name, binders := binders.push premise, conclusion := .const ``False [], says, isLocal, order }
    return some { name, binders, conclusion, says, isLocal, order }

/-! ### Matching -/

abbrev Bound := Array (Option Expr)

def digitsOf (e : Expr) : Option Nat :=
  match (if e.isAppOf ``OfNat.ofNat then e.getAppArgs[1]?.getD e else e) with
  | .lit (.natVal n) => some n
  | _ => none

def endsIn (e : Expr) (part : String) : Bool :=
  match headOf? e with
  | some (.str _ last) => last == part
  | _ => false

/-- Whether Lean sees the term in the pattern although they look different: `zero` and `0`, `succ n` and `3`, `n + 2` and `4`. -/
def isSaidOtherwise (pattern term : Expr) : Bool :=
  if isNumber pattern == isNumber term then false else
  let (number, other) := if isNumber pattern then (pattern, term) else (term, pattern)
  let value := digitsOf number
  if endsIn other "zero" then value == some 0
  else if isNumber pattern then false
  else if endsIn other "succ" then value != some 0
  else match other.isAppOf ``HAdd.hAdd, (other.getAppArgs.back?).bind digitsOf, value with
    | true, some added, some value => added <= value
    | _, _, _ => false

/-- The variables of a pattern stand for something that Lean will find. -/
partial def leaveToLean (pattern : Expr) (bound : Bound) : Bound :=
  match pattern with
  | .mvar ⟨.num _ i⟩ => if (bound[i]?.getD none).isSome then bound else bound.set! i (some (hole `found))
  | _ => pattern.getAppArgs.foldl (fun bound arg => leaveToLean arg bound) bound

/-- How much of a pattern is in a term (constants found), and what its variables stand for. -/
partial def fits? (pattern term : Expr) (bound : Bound) : Option (Nat × Bound) :=
  match pattern with
  | .mvar ⟨.num _ i⟩ =>
    match bound[i]?.getD none with
    | some before => if before == term || isHole term || isHole before || (isNumber before && isNumber term) then some (0, bound) else none
    | none => if term.hasLooseBVars then none else some (0, bound.set! i (some term))
  | _ =>
    if pattern == term then some (size pattern, bound)
    else if isAnything pattern || isHole term || isHole pattern then some (0, bound)
    else
      let (args, parts) := (pattern.getAppArgs, term.getAppArgs)
      if pattern.getAppFn != term.getAppFn || args.size != parts.size then
        if isSaidOtherwise pattern term then some (0, leaveToLean pattern bound) else none
      else (args.zip parts).foldlM (init := (1, bound)) fun (found, bound) (arg, part) => do
        let (more, bound) ← fits? arg part bound
        return (found + more, bound)

/-- A pattern with its variables replaced, as far as they are bound. -/
def instanceOf (pattern : Expr) (bound : Bound) : Expr :=
  if !pattern.hasExprMVar then pattern else pattern.replace fun part =>
    match part with
    | .mvar ⟨.num _ i⟩ => bound[i]?.getD none
    | _ => none

/-- The body of a binder with its variable replaced. -/
partial def substitute (e : Expr) (depth : Nat) (by_ : Expr) : Expr :=
  if !e.hasLooseBVars then e else
  match e with
  | .bvar i => if i == depth then by_ else e
  | _ =>
    let binds := isMark e "λ" || isMark e "∀" || isMark e "let"
    let args := e.getAppArgs
    mkAppN e.getAppFn ((List.range args.size).toArray.map fun i =>
      substitute args[i]! (if binds && i == 1 then depth + 1 else depth) by_)

/-- The distinct parts of a term that mention no bound variable, the outermost first. -/
partial def partsOf (e : Expr) (soFar : Std.HashSet Expr × Array Expr := ({}, #[])) : Std.HashSet Expr × Array Expr :=
  if soFar.1.contains e then soFar else
  let found := if e.hasLooseBVars then soFar.2 else soFar.2.push e
  e.getAppArgs.foldl (fun soFar arg => partsOf arg soFar) (soFar.1.insert e, found)

/-- The constants in a pattern, in the order of where they stand. -/
partial def constantsIn (e : Expr) (soFar : Std.HashSet Expr × Array Name) : Std.HashSet Expr × Array Name :=
  if soFar.1.contains e then soFar else
  let names := match headOf? e with
    | some name => if soFar.2.contains name then soFar.2 else soFar.2.push name
    | none => soFar.2
  e.getAppArgs.foldl (fun soFar arg => constantsIn arg soFar) (soFar.1.insert e, names)

/-! ### Goals -/

/-- `Exists`, `Exists =` where the last thing said is an equation for a variable, `And`, `Or`; nothing for others. -/
partial def outlineOf (e : Expr) : String :=
  if e.isAppOfArity ``Exists 2 then
    let rec body (e : Expr) : Expr := if isMark e "λ" || e.isAppOfArity ``Exists 2 then body e.appArg! else e
    let said := body e.appArg!
    if said.isAppOf ``Eq && (said.getAppArgs.toList.drop 1).any Expr.isFVar then "Exists =" else "Exists"
  else if e.isAppOf ``And then "And" else if e.isAppOf ``Or then "Or" else ""

def filling (wrap : String) (by_ : String) : String := String.intercalate by_ (wrap.splitOn "%")

/-- What would prove the target if it were proved, `%` standing for that proof in what comes with it. -/
partial def waysTo (e : Expr) (wrap : String) (depth : Nat) (found : Array (Expr × String)) : Array (Expr × String) :=
  let found := if depth > 0 then found.push (e, wrap) else found
  if depth > 2 || found.size > 8 then found
  else if e.isAppOfArity ``Or 2 then
    let found := waysTo e.appFn!.appArg! (filling wrap "Or.inl (%)") (depth + 1) found
    waysTo e.appArg! (filling wrap "Or.inr (%)") (depth + 1) found
  else if e.isAppOfArity ``Exists 2 && isMark e.appArg! "λ" then
    let witness := hole (.num `witness depth)
    waysTo (substitute e.appArg!.appArg! 0 witness) (filling wrap "⟨_, %⟩") (depth + 1) found
  else found

def isUnfoldable (e : Expr) : Bool :=
  match headOf? e with
  | some name => ![``Eq, ``HEq, ``And, ``Or, ``Iff, ``Exists, ``Not, ``False, ``True, ``Nat.le, ``Nat.lt, `Int.le, `Int.lt].contains name
  | none => false

structure Fact where
  name : String
  node : Expr
  turned : Bool := false

structure Goal where
  target : Option Expr
  targets : Array (Expr × String)
  facts : Array Fact
  rules : Array Lemma
  shown : Std.HashMap FVarId String

/-! ### How lemmas would be used -/

def infix? (name : Name) : Option String :=
  ([(``HAdd.hAdd, "+"), (``HSub.hSub, "-"), (``HMul.hMul, "*"), (``HDiv.hDiv, "/"), (``HMod.hMod, "%"), (``HPow.hPow, "^"),
    (``HAppend.hAppend, "++")] : List (Name × String)).lookup name

/-- A term as an argument in text; `_` if it cannot be said simply. -/
partial def argument (goal : Goal) (term : Option Expr) : S String := do
  let some e := term | return "_"
  if e.hasLooseBVars then return "_"
  match e with
  | .fvar id => return ((goal.shown[id]?).filter fun name => !name.any (· == '✝')).getD "_"
  | .lit (.natVal n) => return toString n
  | _ =>
    let some head := headOf? e | return "_"
    let args := e.getAppArgs
    if head == ``OfNat.ofNat then return ← argument goal args[1]?
    let infos := (← infosOf head).filter (· != .instImplicit)
    let mut explicit := #[]
    for arg in args, i in [0:args.size] do
      if (infos[i]?.getD .default) matches .default then explicit := explicit.push (← argument goal arg)
    if explicit.contains "_" then return "_"
    if let some sign := infix? head then
      if explicit.size == 2 then return s!"({explicit[0]!} {sign} {explicit[1]!})"
    return if explicit.isEmpty then toString head else s!"({String.intercalate " " (toString head :: explicit.toList)})"

def nothingBound (lemma_ : Lemma) : Bound := lemma_.binders.map fun _ => none

/-- Whether concluding with a lemma leads to something larger of the same kind, and so from there: `p (n + 2) → p n`. -/
def isGrowing (lemma_ : Lemma) : Bool :=
  let ordinary := [``Eq, ``Not, ``Iff, ``And, ``Or, ``False, ``True, ``LE.le, ``LT.lt]
  !(headOf? lemma_.conclusion).any ordinary.contains && lemma_.binders.any fun b => b.premise && headOf? b.type == headOf? lemma_.conclusion && size b.type > size lemma_.conclusion

/-- The operands of `operation` in a term, and theirs, from left to right. -/
partial def leaves (operation e : Expr) : List Expr :=
  if e.isApp && e.appFn!.isApp && e.appFn!.appFn! == operation then leaves operation e.appFn!.appArg! ++ leaves operation e.appArg! else [e]

/-- `comm ∘`, `assoc ∘` or, for other orders of the same, `turns ∘`, with the operation and its type, for a lemma that says
just that; nothing for others. -/
def lawOf (lemma_ : Lemma) : String := Id.run do
  unless lemma_.conclusion.isAppOfArity ``Eq 3 && !lemma_.binders.any (·.premise) do return ""
  let (left, right) := (lemma_.conclusion.appFn!.appArg!, lemma_.conclusion.appArg!)
  unless left.isApp && left.appFn!.isApp do return ""
  let (before, after) := (leaves left.appFn!.appFn! left, leaves left.appFn!.appFn! right)
  if before.length < 2 || before.length != after.length || before.eraseDups.length != before.length then return ""
  if before.any fun e => !e.isMVar || !after.contains e then return ""
  let isNested := before.length == 3 && !left.appFn!.appArg!.isMVar
  let kind := if before.length == 2 then "comm" else if isNested && before == after then "assoc" else "turns"
  let heads := [left, lemma_.conclusion.getAppArgs[0]!].filterMap fun e => (headOf? e).map toString
  return String.intercalate " " (kind :: heads)

/-- The use of a lemma whose variables stand for `bound`: premises that are at hand bind more of them. -/
def entry (lemma_ : Lemma) (use : String) (bound : Bound) (goal : Goal) (fit : Nat) : S (Use × Bound) := do
  let mut bound := bound
  let mut given : Array (Option String) := #[]
  let mut (met, unmet, loose) := (0, 0, 0)
  for binder in lemma_.binders do
    if !binder.premise then given := given.push none
    else
      let wanted := instanceOf binder.type bound
      let facts := goal.facts.filter fun fact => fact.name != lemma_.name
      let found := match facts.find? fun fact => fact.node == wanted with
        | some fact => some (fact.name, bound)
        | none => facts.findSome? fun fact => match fits? wanted fact.node bound with
          | some (found, more) => if found > 0 then some (fact.name, more) else none
          | none => none
      match found with
      | some (name, more) =>
        bound := more
        met := met + 1
        given := given.push (some name)
      | none =>
        unmet := unmet + 1
        given := given.push none
  let mut args := #[]
  for binder in lemma_.binders, i in [0:lemma_.binders.size] do
    let value := bound[i]?.getD none
    if !binder.premise && binder.info != .instImplicit && value.isNone then loose := loose + 1
    if binder.info matches .default then
      let shown : String ← match given[i]?.getD none with
        | some name => pure name
        | none => argument goal value
      args := args.push shown
  return ({
    name := lemma_.name, use, args, unmet, loose, fit, met, isLocal := lemma_.isLocal, order := lemma_.order,
    size := size lemma_.conclusion, grows := isGrowing lemma_, law := lawOf lemma_ }, bound)

/-- Whether a pattern says anything. -/
def isBare (pattern : Expr) : Bool := pattern.isMVar || isAnything pattern

def concludeOne (lemma_ : Lemma) (target : Expr) (wrap : String) (goal : Goal) (into : Array Use) : S (Array Use) := do
  let attempt (pattern : Expr) (use : String) (into : Array Use) : S (Bool × Array Use) := do
    if isBare pattern then return (false, into)
    let some (fit, bound) := fits? pattern target (nothingBound lemma_) | return (false, into)
    let (made, _) ← entry lemma_ use bound goal fit
    return (true, if wrap == "%" || made.unmet == 0 then into.push { made with wrap } else into)
  let conclusion := lemma_.conclusion
  let (done, into) ← attempt conclusion "exact" into
  if done then return into
  if conclusion.isAppOfArity ``Eq 3 then
    let args := conclusion.getAppArgs
    return (← attempt (mkAppN conclusion.getAppFn #[args[0]!, args[2]!, args[1]!]) "symm" into).2
  if conclusion.isAppOfArity ``Iff 2 then
    let (_, into) ← attempt conclusion.appFn!.appArg! "mpr" into
    return (← attempt conclusion.appArg! "mp" into).2
  return into

def conclude (lemma_ : Lemma) (goal : Goal) (into : Array Use) : S (Array Use) := do
  let some target := goal.target | return into
  if isBare lemma_.conclusion then return into
  let mut into := into
  for (node, wrap) in goal.targets do into ← concludeOne lemma_ node wrap goal into
  if lemma_.conclusion.isConstOf ``False && !target.isConstOf ``False then
    let (made, _) ← entry lemma_ "elim" (nothingBound lemma_) goal 1
    if made.unmet == 0 then into := into.push made
  return into

def isSided (e : Expr) : Bool := e.isAppOfArity ``Eq 3 || e.isAppOfArity ``Iff 2

/-- `parts`: those of the term that is rewritten in. -/
def rewrite (lemma_ : Lemma) (term : Expr) (parts : Array Expr) (at_ : String) (goal : Goal) (into : Array Use) : S (Array Use) := do
  unless isSided lemma_.conclusion do return into
  let (left, right) := (lemma_.conclusion.appFn!.appArg!, lemma_.conclusion.appArg!)
  let mut into := into
  for (pattern, other, back) in [(left, right, false), (right, left, true)] do
    if isBare pattern || pattern.isRawNatLit then continue
    let mut instances : Array Expr := #[]
    for part in parts do
      if instances.size >= mostInstances then break
      unless part.getAppFn == pattern.getAppFn do continue
      let some (fit, bound) := fits? pattern part (nothingBound lemma_) | continue
      let here := instanceOf pattern bound
      if instances.contains here then continue
      let (made, more) ← entry lemma_ "rw" bound goal fit
      if instanceOf other more == part then continue -- changes nothing
      into := into.push { made with back, at_, nth := instances.size, whole := part == term }
      instances := instances.push here
  return into

def forward (lemma_ : Lemma) (goal : Goal) (into : Array Use) : S (Array Use) := do
  let some first := lemma_.binders.find? fun b => b.premise && !isBare b.type | return into
  let mut into := into
  let mut seen : Array Expr := #[]
  for fact in goal.facts do
    if fact.name == lemma_.name then continue
    let some (fit, bound) := fits? first.type fact.node (nothingBound lemma_) | continue
    if fit == 0 then continue
    let (made, bound) ← entry lemma_ "forward" bound goal fit
    let conclusion := instanceOf lemma_.conclusion bound
    if made.unmet > 0 || made.loose > 0 || seen.contains conclusion then continue
    seen := seen.push conclusion
    if some conclusion == goal.target || goal.facts.any fun fact => fact.node == conclusion then continue
    into := into.push { made with gives := outlineOf conclusion }
  return into

/-- Those that say most about the goal and leave least open. -/
def best (uses : Array Use) (count : Nat) : Array Use :=
  let worth (use : Use) : Int := use.fit + 3 * use.met - 2 * use.unmet - 3 * use.loose + (if use.order > 1 then 1 else 0)
  let rows := (uses.toList.zip (List.range uses.size)).toArray
  let sorted := rows.qsort fun (a, i) (b, j) =>
    if worth a != worth b then worth a > worth b
    else if a.order != b.order then a.order > b.order
    else if a.size != b.size then a.size < b.size
    else if a.name != b.name then a.name < b.name
    else i < j
  (sorted.toList.take count).toArray.map (·.1)

/-- The uses of a goal's own rules and of the text's lemmas, the best of each kind. -/
def ownUses (goal : Goal) (own : Array Lemma) : S (Array Use) := do
  let mut (concluding, rewriting, elsewhere, further) : Array Use × Array Use × Array Use × Array Use := (#[], #[], #[], #[])
  let parts := (goal.target.map fun target => (partsOf target).2).getD #[]
  let facts := (goal.facts.filter fun fact => !fact.turned).map fun fact => (fact, (partsOf fact.node).2)
  for lemma_ in goal.rules ++ own do
    concluding ← conclude lemma_ goal concluding
    if isSided lemma_.conclusion then
      if let some target := goal.target then rewriting ← rewrite lemma_ target parts "" goal rewriting
      for (fact, parts) in facts do
        if fact.name != lemma_.name then elsewhere ← rewrite lemma_ fact.node parts fact.name goal elsewhere
    -- From a fact a constructor makes another one of its kind, and from that again.
    unless lemma_.constructs do further ← forward lemma_ goal further
  return best concluding 24 ++ best rewriting 32 ++ best elsewhere 24 ++ best further 16

/-- Names of the text's lemmas that are about what the goal is about: the greater part of their constants is in it. -/
def relatedTo (goal : Goal) (own : Array Lemma) : Array String :=
  let said (terms : List Expr) : Array Name :=
    let common := [``Eq, ``Not, ``Iff, ``And, ``Or, ``False, ``True, ``OfNat.ofNat]
    (terms.foldl (fun soFar e => constantsIn e soFar) ({}, #[])).2.filter fun name => !common.contains name
  let here := said (goal.target.toList ++ (goal.facts.map (·.node)).toList)
  let rows := own.map fun lemma_ =>
    let constants := said (lemma_.conclusion :: ((lemma_.binders.filter (·.premise)).map (·.type)).toList)
    (lemma_, (constants.filter here.contains).size, Nat.max 2 constants.size)
  let close := (rows.filter fun (_, shared, all) => shared * 2 > all).qsort fun (a, p, q) (b, r, s) =>
    if p * s != r * q then p * s > r * q else if a.order != b.order then a.order > b.order else a.name < b.name
  (close.toList.take 16).toArray.map (·.1.name)

/-! ### Which lemmas there are -/

/-- Constructors: of predicates they are the rules. -/
def mayBeLemma (info : ConstantInfo) : Bool :=
  info matches .thmInfo _ || info matches .axiomInfo _ || info matches .ctorInfo _

/-- What Lean makes by itself for types and definitions. -/
def isGenerated (name : Name) : Bool :=
  let texts := (components name).map fun part => match part with | .str _ text => text | _ => "_"
  let last := texts.getLast?.getD ""
  let begins := ["_", "match_", "proof_", "induct", "fun_cases", "hcongr_", "noConfusion", "ofNat_eq_", "ctorIdx", "ctor_eq", "toCtorIdx"]
  texts.any (fun text => begins.any fun stem => text.startsWith stem)
    || ["eq_def", "congr_simp", "sizeOf_spec", "rec", "recOn", "casesOn", "brecOn", "below"].contains last
    || (last.startsWith "eq_" && last.length > 3 && (last.toList.drop 3).all Char.isDigit)

/-- What programs about programs are made of. -/
def isElsewhere (name : Name) : Bool :=
  match (components name).map fun part => match part with | .str _ text => text | _ => "" with
  | "Lean" :: _ | "Lake" :: _ | "_private" :: _ => true
  | "Std" :: second :: _ => ["Internal", "Do", "Sat", "Tactic"].contains second
  | _ => false

def constantHead (e : Expr) : Name :=
  match e.getAppFn with
  | .const name _ => name
  | _ => .anonymous

/-- What a proposition is found by where it is the left side of an `↔`: its head, and of an equation the head of its left side. -/
def saying (e : Expr) : Name × Name :=
  (constantHead e, if e.isAppOfArity ``Eq 3 then constantHead e.appFn!.appArg! else .anonymous)

/-- The heads of a conclusion and of its left side. -/
def headsOf (type : Expr) : Name × Name :=
  let conclusion := resultOf type
  let head := constantHead conclusion
  if head == ``Eq || head == ``Iff then (head, constantHead conclusion.appFn!.appArg!)
  else (if head == ``GE.ge then ``LE.le else if head == ``GT.gt then ``LT.lt else if head == ``Ne || head == ``Not then ``False else head, .anonymous)

def forImported (env : Environment) (state : σ) (wanted : Name → Bool) (visit : σ → Name → ConstantInfo → σ) : σ := Id.run do
  let mut state := state
  for module in env.allImportedModuleNames, data in env.header.moduleData do
    unless wanted module do continue
    for name in data.constNames, info in data.constants do
      if mayBeLemma info then state := visit state name info
  return state

def indexLibrary (env : Environment) (own : NameSet) : Library :=
  let wanted (module : Name) : Bool := !own.contains module && module.getRoot != `Lean && module.getRoot != `Lake
  forImported env ({} : Library) wanted fun ⟨conclusion, lefts, equivalent⟩ name info =>
    let (head, left) := headsOf info.type
    let isData := info matches .ctorInfo _ && !(env.find? head).any fun made => isPropSort (resultOf made.type)
    if head.isAnonymous || isData || isElsewhere name || isGenerated name then ⟨conclusion, lefts, equivalent⟩
    else
      let row := (name, info.type)
      let key := (head, left)
      ⟨conclusion.insert key (row :: conclusion.getD key []),
        if left.isAnonymous then lefts else lefts.insert left (row :: lefts.getD left []),
        if head == ``Iff && !left.isAnonymous then
          let said := saying (resultOf info.type).appFn!.appArg!
          equivalent.insert said (row :: equivalent.getD said [])
        else equivalent⟩

/-- The lemmas of the text and of its project; none is what is being proved, or a part of it. The later, the higher `order`. -/
def readOwn (own : NameSet) (declaration : String) : S (Array Lemma) := do
  let env ← getEnv
  let isOneself (shown : String) : Bool :=
    declaration != "" && ((shown ++ ".").startsWith (declaration ++ ".") || declaration.startsWith (shown ++ "."))
  let elsewhere := if own.isEmpty then #[] else
    forImported env (#[] : Array (Name × ConstantInfo × Nat)) own.contains fun rows name info => rows.push (name, info, 0)
  let mut here := #[]
  for (name, info) in ownConstants env do
    if mayBeLemma info then
      let line := ((← findDeclarationRangesCore? name).map fun ranges => ranges.range.pos.line).getD 0
      here := here.push (name, info, line + 1)
  let mut found := #[]
  for (name, info, order) in elsewhere ++ here do
    let shown := userName name
    if isGenerated shown || name.hasMacroScopes || isOneself shown.toString then continue
    if let some lemma_ ← readLemma shown.toString info.type true order then
      if lemma_.says then found := found.push { lemma_ with constructs := info matches .ctorInfo _ }
  return found.qsort fun a b => if a.order != b.order then a.order > b.order else a.name < b.name

def fromLibrary (goal : Goal) (library : Library) : S (Array Use) := do
  let some target := goal.target | return #[]
  let mut (concluding, rewriting, read) : Array Use × Array Use × Nat := (#[], #[], 0)
  let head := (headOf? target).getD .anonymous
  for (node, wrap) in goal.targets do
    let some said := headOf? node | continue
    let sides := if node.isAppOfArity ``Eq 3 then [node.appFn!.appArg!, node.appArg!] else if node.isAppOfArity ``Iff 2 then [node.appFn!.appArg!] else []
    -- The last is `m = n` of two variables.
    let keys := sides.filterMap (fun side => (headOf? side).map (said, ·)) ++ [(said, Name.anonymous)]
    for key in keys.eraseDups do
      for (name, type) in (library.conclusion.getD key []).reverse do
        if read >= mostRead then break
        read := read + 1
        if let some lemma_ ← lemmaOf name type then concluding ← concludeOne lemma_ node wrap goal concluding
  for (name, type) in (library.left.getD head []).reverse do
    if read >= mostRead then break
    unless (headsOf type).1 == ``Iff do continue
    read := read + 1
    if let some lemma_ ← lemmaOf name type then concluding ← conclude lemma_ goal concluding
  let parts := (partsOf target).2
  let mut seen : NameSet := {}
  for part in parts do
    let some name := headOf? part | continue
    if !part.isApp || part == target || seen.contains name then continue
    seen := seen.insert name
    for (name, type) in (library.left.getD name []).reverse do
      if read >= mostRead then break
      read := read + 1
      if let some lemma_ ← lemmaOf name type then rewriting ← rewrite lemma_ target parts "" goal rewriting
  -- Ways to say a hypothesis: `a * a = b * b` is `a = b`.
  let mut others : Array Use := #[]
  read := 0
  for fact in goal.facts do
    if fact.turned then continue
    let some said := headOf? fact.node | continue
    let side := if said == ``Eq then headOf? fact.node.appFn!.appArg! else some Name.anonymous
    let parts := (partsOf fact.node).2
    for (name, type) in ((side.map fun side => library.equivalent.getD (said, side) []).getD []).reverse do
      if read >= mostRead then break
      read := read + 1
      if let some lemma_ ← lemmaOf name type then others ← rewrite lemma_ fact.node parts fact.name goal others
  let isAtHand (use : Use) : Bool := use.met > 0 && use.unmet == 0 && use.loose == 0
  return best (concluding.filter fun use => use.fit >= 3 && use.loose <= 1 || isAtHand use) 24
    ++ best (rewriting.filter fun use => !use.back && use.loose == 0) 24
    ++ best (others.filter fun use => use.whole && !use.back && use.fit >= 3 && use.unmet == 0 && use.loose == 0) 6
where
  lemmaOf (name : Name) (type : Expr) : S (Option Lemma) := do
    if let some known := (← get).lemmas[name]? then return known
    let lemma_ ← readLemma name.toString type false 0
    modify fun s => { s with lemmas := s.lemmas.insert name lemma_ }
    return lemma_

/-! ### What the variables and definitions of a goal are -/

/-- Whether a term's head is the motive, the binder with this number of those around it. -/
def isMotive (type : Expr) (depth motive : Nat) : Bool :=
  match (resultOf type).getAppFn with
  | .bvar i => depth + arrows type == motive + i + 1
  | _ => false

partial def minorFields (type : Expr) (depth motive : Nat) (soFar : Array (String × Bool) := #[]) : Option (Array (String × Bool)) :=
  match type with
  | .forallE name domain body info =>
    -- An alternative names only what is explicit.
    let more := if info matches .default then soFar.push (name.toString, isMotive domain depth motive) else soFar
    minorFields body (depth + 1) motive more
  | _ => if isMotive type depth motive then some soFar else none

partial def alternativesOf (type : Expr) (depth : Nat) (motive : Option Nat) (soFar : Array Alternative := #[]) : Array Alternative :=
  match type with
  | .forallE name domain body _ =>
    let shown := name.toString
    match motive with
    | none => alternativesOf body (depth + 1) (if shown.startsWith "motive" then some depth else none) soFar
    | some motive => match minorFields domain depth motive with
      | some fields => alternativesOf body (depth + 1) (some motive) (soFar.push { name := shown, fields })
      | none => alternativesOf body (depth + 1) (some motive) soFar
  | _ => soFar

def eliminatorOf (name : Name) : S (Option Eliminator) := do
  if let some known := (← get).eliminators[name]? then return known
  let env ← getEnv
  let found := match env.find? name with
    | some (.inductInfo details) => if isClass env name then none else
      (env.find? (.str name "rec")).map fun info => { indices := details.numIndices, alternatives := alternativesOf info.type 0 none }
    | _ => none
  modify fun s => { s with eliminators := s.eliminators.insert name found }
  return found

def madeOf (node : Expr) : S Json := do
  let some head := headOf? node | return .null
  let some found ← eliminatorOf head | return .null
  let args := node.getAppArgs
  let indices := args.toList.drop (args.size - found.indices)
  let plain := indices.all Expr.isFVar && indices.eraseDups.length == indices.length
  return object [
    ("type", head.toString), ("plain", plain), ("recursive", found.alternatives.any fun one => one.fields.any (·.2)),
    ("alternatives", .arr (found.alternatives.map fun one => object [
      ("name", one.name), ("fields", .arr (one.fields.map fun (name, hypothesis) => object [("name", name), ("hypothesis", hypothesis)]))]))]

/-- Where the text's equations want a constructor: heads and places of their left sides. -/
def wanted (own : Array Lemma) (env : Environment) : Array (Name × Nat) := Id.run do
  let mut places := #[]
  for lemma_ in own do
    unless lemma_.conclusion.isAppOfArity ``Eq 3 do continue
    let left := lemma_.conclusion.appFn!.appArg!
    let some head := headOf? left | continue
    for arg in left.getAppArgs, i in [0:left.getAppNumArgs] do
      let isMade := (headOf? arg).any fun name => name == ``OfNat.ofNat || (env.find? name).any fun info => info matches .ctorInfo _
      if isMade then places := places.push (head, i)
  return places

def definitionsIn (goal : Goal) (env : Environment) (own : NameSet) : Array Name :=
  let terms := goal.target.toList ++ (goal.facts.map (·.node)).toList
  (terms.foldl (fun soFar e => constantsIn e soFar) ({}, #[])).2.filter fun name =>
    (match env.find? name with | some (.defnInfo _) => true | _ => false) && !isLibrary env own name && !Meta.isInstanceCore env name

/-- A name as one may write it where the namespace is open, unless another thing has the shorter name. -/
def shortened (env : Environment) (namespace_ : Name) (taken : Array String) (text : String) : String := Id.run do
  let open_ := (components namespace_).reverse.map fun name => name.toString
  let mut longer : List String := []
  for space in open_ do
    if text.startsWith (space ++ ".") then
      let rest := String.intercalate (space ++ ".") ((text.splitOn (space ++ ".")).drop 1)
      let isHidden := taken.contains ((rest.splitOn ".").headD "") || longer.any fun other => env.contains (other ++ "." ++ rest).toName
      return if isHidden || isProtected env text.toName then text else rest
    longer := space :: longer
  return text

def Use.json (use : Use) (name : String) : Json := object [
  ("name", name), ("use", use.use), ("args", texts use.args), ("fit", toJson use.fit), ("met", toJson use.met), ("unmet", toJson use.unmet),
  ("loose", toJson use.loose), ("local", use.isLocal), ("back", use.back), ("at", use.at_), ("nth", toJson use.nth), ("whole", use.whole),
  ("wrap", use.wrap), ("gives", use.gives), ("grows", use.grows), ("law", use.law)]

def unfolded (type : Expr) (node : Option Expr) : S (Option Expr) := do
  let some pattern := node | return none
  unless isUnfoldable pattern do return node
  let whole ← try Meta.whnf type catch _ => return node
  return (← readPattern whole).orElse fun _ => node

/-- What is known about a goal; `library`: the index, if that is wanted too. -/
def survey (mvar : MVarId) (own : NameSet) (library : Option Library) : S Json := do
  let some decl := (← getMCtx).findDecl? mvar | throwError "unknown goal {mvar.name}"
  let (lctx, _) := decl.lctx.sanitizeNames.run { options := ← getOptions }
  let lemmas := (← get).own
  let env ← getEnv
  let work : S Json := do
    let type ← instantiateMVars decl.type
    let target ← readPattern type
    let targets ← match target with
      | some node => do pure (waysTo ((← unfolded type target).getD node) "%" 0 #[(node, "%")])
      | none => pure #[]
    let parts := (target.map fun node => (partsOf node).2).getD #[]
    let places := wanted lemmas env
    let drives (id : FVarId) : Nat := parts.foldl (init := 0) fun sum part =>
      let args := part.getAppArgs
      (List.range args.size).foldl (init := sum) fun sum i =>
        if args[i]! == .fvar id && (headOf? part).any fun head => places.contains (head, i) then sum + 1 else sum
    let mut makes : Std.HashSet FVarId := {}
    let mut goal : Goal := { target, targets, facts := #[], rules := #[], shown := {} }
    let mut turned := #[]
    let mut variables := #[]
    for local_ in lctx do
      unless local_.kind matches .default do continue
      let id := local_.fvarId
      let name := local_.userName.toString
      let accessible := !name.any (· == '✝')
      let type ← instantiateMVars local_.type
      if isPropSort (resultOf type) then makes := makes.insert id
      let isMaking := makes.contains
      goal := { goal with shown := goal.shown.insert id name }
      let lemma_ ← readLemma name type true 1000000 isMaking
      let node ← readPattern type
      let isProof := lemma_.any (·.says)
      if isProof && accessible then
        if let some node := node then
          goal := { goal with facts := goal.facts.push { name, node } }
          if node.isAppOfArity ``Eq 3 then
            let args := node.getAppArgs
            turned := turned.push { name := name ++ ".symm", node := mkAppN node.getAppFn #[args[0]!, args[2]!, args[1]!], turned := true : Fact }
        if let some lemma_ := lemma_ then goal := { goal with rules := goal.rules.push lemma_ }
      let kind := if isProof then "proof" else match node with
        | none => "other"
        | some node => if isMark node "Sort" then (if isPropSort type then "proposition" else "type") else if isMark node "∀" then "function" else "data"
      let says ← if isProof then do pure (((← unfolded type node).map outlineOf).getD "") else pure ""
      let parts_ : Json ← match node with
        | some node => if local_.isLet then pure Json.null else madeOf node
        | none => pure Json.null
      variables := variables.push (object [
        ("name", name), ("accessible", accessible), ("kind", kind), ("shown", parts.contains (.fvar id)), ("drives", toJson (drives id)),
        ("says", says), ("made_of", parts_)])
    goal := { goal with facts := goal.facts ++ turned }
    let taken := goal.shown.toList.toArray.map (·.2)
    let short := shortened env (← getCurrNamespace) taken
    let uses := (← ownUses goal lemmas).map fun use => use.json (short use.name)
    let found ← match library with
      | some library => do pure ((← fromLibrary goal library).map fun use => use.json use.name)
      | none => pure #[]
    return object [
      ("uses", .arr uses), ("library", .arr found), ("variables", .arr variables),
      ("definitions", texts ((definitionsIn goal env own).map fun name => short name.toString)),
      ("related", texts ((relatedTo goal lemmas).map short))]
  fun state => Meta.withLCtx lctx decl.localInstances (work state)

end Survey

/-! ## Operations -/

/-- Commands in an original that run no code of its own while it is elaborated. -/
def plainCommands : List String := (["declaration", "mutual", "open", "namespace", "section", "end", "variable", "universe", "set_option",
  "in", "include", "omit", "moduleDoc", "eoi", "noncomputableSection", "export", "attribute", "notation", "mixfix"]).map ("Lean.Parser.Command." ++ ·)

def runningWords : List String := ["run_tac", "run_cmd", "run_elab", "run_meta", "by_elab", "native_decide", "initialize", "deriving"]

def runsOwnCode (command : Syntax) : Bool :=
  !plainCommands.contains (kindText command) || walk command false fun found part =>
    found || match part with | .atom _ text => runningWords.contains text | _ => false

def needEnv (json : Json) : M Kept := do
  match numberField? json "env" with
  | some id => findKept id
  | none => throw (request "the request names no environment")

def isNamed (name declaration : String) : Bool := declaration == name || declaration.endsWith ("." ++ name)

/-- Elaborates a whole file, or commands on an environment; `.error` if its header cannot be imported. -/
def elaborateText (json : Json) (inspect : Option (Syntax → Syntax × String)) (wanted : Bool) : M (Except (Array Note) Elaborated) := do
  let text := textField json "text"
  let begun : Except (Array Note) (Nat × Parser.InputContext × Parser.ModuleParserState × Array Note × Array Name) ←
    match numberField? json "env" with
    | some env => pure (Except.ok (env, Parser.mkInputContext text "<input>", {}, #[], #[]))
    | none => do
      let header ← parseHeader text
      match ← openHeader header with
      | .error notes => pure (Except.error notes)
      | .ok id => pure (Except.ok (id, header.input, header.parser, ← readLog header.log, header.imports.map (·.module)))
  match begun with
  | .error notes => return Except.error notes
  | .ok (id, input, parser, notes, imports) =>
    let kept ← findKept id
    let found ← (IO.mkRef (#[] : Array SorryEntry) : BaseIO _)
    let after (trees : PersistentArray InfoTree) (before : Command.State) : M Unit := do
      unless wanted do return
      let met := trees.foldl (fun found tree => findSorries tree none "" before.env found) { last := before.env }
      for hit in met.hits do
        let state ← startAt (withInfo before false) kept.base hit
        found.modify fun list =>
          match list.findIdx? fun entry => entry.hit.start == hit.start && entry.hit.stop == hit.stop with
          | some i => list.modify i fun entry => -- a term may be elaborated again
            { entry with states := if hit.isTactic then entry.states.push state else #[state] }
          | none => list.push ⟨hit, #[state]⟩
    let troubles ← (IO.mkRef (#[] : Array Trouble) : BaseIO _)
    let ranCode ← (IO.mkRef false : BaseIO _)
    let until_ := match field? json "until" with | some (.str name) => if wanted then some (name, lastDeclared text name) else none | _ => none
    let passed (step : Step) : M Bool := do
      if let some trouble := troubleOf step then troubles.modify (·.push trouble)
      if runsOwnCode step.command then ranCode.set true
      let some (name, last) := until_ | return false
      if step.stop < last then return false
      return (← (found.get : BaseIO _)).any fun entry => isNamed name entry.hit.declaration
    let watch : Watch := { inspect := inspect.getD fun command => (command, ""), after, passed }
    let (state, more, stopped) ← elaborate (withInfo kept.state wanted) input parser watch notes
    return Except.ok {
      state := withInfo state false, base := kept.base, notes := more, stopped, imports, sorries := ← (found.get : BaseIO _)
      troubles := ← (troubles.get : BaseIO _), ranCode := ← (ranCode.get : BaseIO _) }

def troubleJson (found : Option Note) : Json := (found.map Note.json).getD .null

def sorryJson (done : Elaborated) (entry : SorryEntry) : M Json := do
  let env := done.state.env
  let declared := if entry.hit.declaration == "" then none else resolve env entry.hit.declaration
  let trouble := declared.bind fun (name, _) => concerning done.troubles env name
  let states ← entry.states.mapM fun id => do return object (← report id #[])
  return object [
    ("start", toJson entry.hit.start), ("end", toJson entry.hit.stop), ("tactic", entry.hit.isTactic),
    ("declaration", entry.hit.declaration), ("states", .arr states), ("trouble", troubleJson trouble)]

def headerReply (notes : Array Note) : List (String × Json) :=
  [("messages", notesJson notes), ("stopped", "header"), ("env", .null), ("sorries", .arr #[])]

def opElaborate (json : Json) : M (List (String × Json)) := do
  let audit := flagField json "audit"
  let policy := (field? json "policy").map fun given => (Policy.ofJson given).inspect
  let inspect := match policy with | some inspect => some inspect | none => if audit then some warnAlways else none
  match ← elaborateText json inspect (flagField json "sorries") with
  | .error notes => return headerReply notes
  | .ok done =>
    let env ← if flagField json "keep" && done.stopped == "" then do pure (toJson (← keep done.state (some done.base))) else pure Json.null
    let reply := [
      ("messages", notesJson done.notes), ("stopped", Json.str done.stopped), ("env", env),
      ("imports", texts (shownNames done.imports)), ("sorries", .arr (← done.sorries.mapM (sorryJson done)))]
    return if audit then reply ++ [("unproved", texts (unproved done.state.env))] else reply

def opStart (json : Json) : M (List (String × Json)) := do
  let kept ← needEnv json
  let env := kept.state.env
  let id ← match field? json "declaration" with
    | some (.str name) => match resolve env name with
      | none => throw ⟨"statement", s!"there is no declaration {name}", []⟩
      | some (_, info) => openProof kept (pure info.type)
    | _ => match Parser.runParserCategory env `term (textField json "statement") with
      | .error error => throw ⟨"statement", error, []⟩
      | .ok stx => openProof kept (statementType stx)
  report id #[]

/-- What may help with the first goal of a state. -/
def opSurvey (json : Json) : M (List (String × Json)) := do
  let host ← read
  let state ← findProof ((numberField? json "state").getD 0)
  let some goal := state.goals.head? | throw (request "the state has no goal")
  let own := (← findKept state.base).own
  let library ← if !flagField json "library" then pure none else
    match (← host.indices.get)[state.base]? with
    | some index => pure (some index)
    | none => do
      let index := Survey.indexLibrary state.core.env own
      host.indices.modify (·.insert state.base index)
      pure (some index)
  let before := (← host.surveyed.get).filter fun (origin, _) => origin == state.origin
  let (found, known) ← inProof state do
    let known ← match before with
      | some (_, known) => pure known
      | none => do
        let (lemmas, known) ← (Survey.readOwn own state.declaration).run {}
        pure { known with own := lemmas }
    (Survey.survey goal own library).run known
  host.surveyed.set (some (state.origin, known))
  return [("survey", found)]

def namesData (names : Array Name) : Json := Json.arr (names.map fun name => Json.arr (nameData name).toArray)

/-- The modules that an environment imports, itself or through its project, and that a judge imports too. -/
def libraryImports (env : Environment) (own : NameSet) (direct : Array Name) : Array String := Id.run do
  let mut found := direct.filter fun module => !own.contains module
  for module in env.allImportedModuleNames, data in env.header.moduleData do
    if own.contains module then found := found ++ (data.imports.map (·.module)).filter fun other => !own.contains other
  return (shownNames found).foldl (fun list name => if list.contains name then list else list.push name) #[]

/-- Elaborates an original, unless it is the one that was read last; `.error` is the reply if it cannot be had. -/
def readOriginal (text : String) : M (Except (List (String × Json)) (Nat × Elaborated)) := do
  let host ← read
  if let some (known, id, done) := ← host.original.get then
    if known == text then return .ok (id, done)
    host.environments.modify (·.erase id)
    host.original.set none
  match ← elaborateText (object [("text", text)]) none false with
  | .error notes => return .error (headerReply notes)
  | .ok done =>
    if done.stopped != "" then return .error [("messages", notesJson done.notes), ("stopped", Json.str done.stopped), ("env", .null)]
    let id ← keep done.state (some done.base)
    host.original.set (some (text, id, done))
    return .ok (id, done)

/-- Reads an original. `spent`: it has run code of its own, so that this process reads no other. -/
def opReference (json : Json) : M (List (String × Json)) := do
  let asked := textsField json "targets"
  match ← readOriginal (textField json "text") with
  | .error reply => return reply
  | .ok (id, done) =>
    let env := done.state.env
    let own (text : String) : Option Name := (resolve env text).bind fun (name, _) => if isImported env name then none else some name
    let error (name : Name) : Option Note := concerning done.troubles env name
    let targets := if asked.isEmpty then (openNames env).filter fun name => (error name).isNone else asked.filterMap own
    return [
      ("messages", notesJson done.notes), ("stopped", Json.str ""), ("imports", texts (shownNames done.imports)),
      ("spent", toJson done.ranCode), ("env", toJson id), ("unknown", texts (asked.filter fun name => (own name).isNone)),
      ("targets", namesData targets), ("stated", namesData (declaredNames env)), ("trouble", troubleJson (targets.findSome? error)),
      ("library", texts (libraryImports env (← findKept done.base).own done.imports)),
      ("own", texts (sorted (shownNames (← findKept done.base).own.toArray)))]

/-- What an original says, as data without its proofs: of its own names, and of imported ones that a candidate rests on. -/
def opMeaning (json : Json) : M (List (String × Json)) := do
  let kept ← needEnv json
  let env := kept.state.env
  let names (key : String) : Array Name := (listField json key).map nameOfData
  match exported env (← findKept kept.base).own #[] (names "names" ++ (names "imported").filter (isImported env)) with
  | .error error => throw (request error)
  | .ok (data, declared) =>
    let implemented := declared.filter fun name => (Compiler.getImplementedBy? env name).isSome || isExtern env name
    return [("original", data), ("implemented", namesData implemented)]

def opExport (json : Json) : M (List (String × Json)) := do
  let kept ← needEnv json
  let env := kept.state.env
  let names (key : String) : Array Name := (listField json key).filterMap fun item =>
    match item with
    | .str text => (resolve env text).map (·.1)
    | data => some (nameOfData data)
  match exported env (← findKept kept.base).own (names "whole") (names "stated") with
  | .ok (data, declared) => return [("data", data), ("imported", namesData (declared.filter (isImported env)))]
  | .error error => throw (request error)

def opParse (json : Json) : M (List (String × Json)) := do
  match ← elaborateText (object [("text", textField json "after")]) none false with
  | .error notes => return [("problem", Json.str ((notes.map (·.text)).toList.headD ""))]
  | .ok done =>
    let wrong := if done.stopped != "" then some done.stopped else (errorsOf done.notes)[0]?.map (·.text)
    if let some reason := wrong then
      return [("stopped", done.stopped), ("problem", Json.str s!"the text in front of it does not elaborate: {reason}")]
    let env := done.state.env
    match Parser.runParserCategory env (textField json "category").toName (textField json "text") with
    | .error error => return [("problem", Json.str error)]
    | .ok stx =>
      let name := textField json "name"
      return [("root", outline stx 5), ("known", toJson (name != "" && (resolve env name).isSome))]

def opBegins (json : Json) : M (List (String × Json)) := do
  let (start, stop) := ((numberField? json "start").getD 0, (numberField? json "end").getD 0)
  let place (command : Syntax) : Nat := ((rangeOf command).map (·.1)).getD stop
  let inspect (command : Syntax) : Syntax × String :=
    let at_ := place command
    (command, if at_ >= start && at_ < stop then s!"inside {kindText command}" else if at_ >= start then "seen" else "")
  match ← elaborateText (object [("text", textField json "text")]) (some inspect) false with
  | .error notes => return [("problem", Json.str ((notes.map (·.text)).toList.headD ""))]
  | .ok done =>
    let mark := "inside "
    return [("problem", Json.str (if done.stopped.startsWith mark then String.join ((done.stopped.splitOn mark).drop 1) else ""))]

def opDeclarations (json : Json) : M (List (String × Json)) := do
  let host ← read
  let kept ← needEnv json
  let (only, module) := (textField json "prefix", textField json "module")
  let key := s!"{(numberField? json "env").getD 0} {only} {module}"
  let rows ← do
    let (known, rows) ← host.listing.get
    if known == key then pure rows
    else
      let rows := listRows kept.state.env only module
      host.listing.set (key, rows)
      pure rows
  let offset := (numberField? json "offset").getD 0
  let page := (rows.toList.drop offset).take ((numberField? json "limit").getD rows.size)
  let wanted := flagField json "types"
  let shown ← inTermElab kept.state do
    page.mapM fun (_, _, info, _) => if wanted then do return Json.str (← printed info.type) else pure Json.null
  match shown with
  | .error error => throw (request (← exceptionText error))
  | .ok types =>
    let items := (page.zip types).map fun ((text, _, info, owner), type) => object [
      ("name", text), ("kind", kindName info), ("module", match owner with | some name => .str name.toString | none => .null), ("type", type)]
    return [("items", .arr items.toArray), ("total", toJson rows.size)]

def opFree (json : Json) : M (List (String × Json)) := do
  let host ← read
  for id in (listField json "states").filterMap (·.getNat?.toOption) do host.states.modify (·.erase id)
  for id in (listField json "envs").filterMap (·.getNat?.toOption) do
    host.environments.modify fun map => match map[id]? with
      | some kept => if kept.base == id then map else map.erase id
      | none => map
  return []

def opReset (json : Json) : M (List (String × Json)) := do
  let host ← read
  host.states.set {}
  let kept := numberField? json "env"
  host.environments.modify (·.filter fun id entry => entry.base == id || some id == kept)
  return []

/-- Memory of this process that is its own, in bytes; 0 where the system does not say. -/
def ownMemory : IO Nat := do
  try
    let fields := ((← IO.FS.readFile "/proc/self/statm").splitOn " ").map fun text => text.toNat?.getD 0
    return ((fields[1]?.getD 0) - (fields[2]?.getD 0)) * 4096
  catch _ => return 0

private unsafe def runInitializersUnsafe : IO Unit := do enableInitializersExecution

/-- From now on modules run their initializers when they are imported. A judge's never do. -/
@[implemented_by runInitializersUnsafe]
opaque runInitializers : IO Unit

def readsNothing : List String := ["ping", "version", "memory", "judge"]

def perform (op : String) (json : Json) : M (List (String × Json)) := do
  let host ← read
  -- A text, a module or a tactic: code that is not the library's may run from now on.
  unless readsNothing.contains op do
    host.hasRead.set true
    runInitializers
  match op with
  | "ping" => return []
  | "open" =>
    let header ← parseHeader (textField json "text")
    let imports := texts (shownNames (header.imports.map (·.module)))
    match ← openHeader header with
    | .ok id => return [("env", toJson id), ("messages", .arr #[]), ("imports", imports)]
    | .error notes => return [("env", .null), ("messages", notesJson notes), ("imports", imports)]
  | "elaborate" => opElaborate json
  | "start" => opStart json
  | "tactic" =>
    let heartbeats := (numberField? json "heartbeats").getD 0
    runTactic ((numberField? json "state").getD 0) (textField json "text") heartbeats (textsField json "without")
  | "focus" =>
    let indices := (listField json "goals").filterMap (·.getNat?.toOption)
    report (← focus ((numberField? json "state").getD 0) indices) #[]
  | "survey" => opSurvey json
  | "free" => opFree json
  | "reset" => opReset json
  | "audit" =>
    let kept ← needEnv json
    match auditReport kept.state.env (textField json "name") with
    | some reply => return reply
    | none => throw (request s!"there is no declaration {textField json "name"}")
  | "export" => opExport json
  | "reference" => opReference json
  | "meaning" => opMeaning json
  | "judge" => return [("rulings", ← judge json)]
  | "declarations" => opDeclarations json
  | "parse" => opParse json
  | "begins" => opBegins json
  | "memory" =>
    return [("rss", toJson (← (ownMemory : IO Nat))), ("states", toJson (← host.states.get).size), ("envs", toJson (← host.environments.get).size)]
  | "version" => return [("lean", Json.str Lean.versionString), ("commit", Json.str Lean.githash), ("node", Json.str "")]
  | other => throw (request s!"there is no operation {other}")

/-! ## Serving -/

/-- Sets the token when the limit is over, unless the request has ended. Looks more often at first. -/
partial def watchLimit (host : Host) (id : Nat) (token : IO.CancelToken) (left pause : Nat) : IO Unit := do
  unless (← host.running.get) == some id do return
  if left == 0 then
    host.verdict.set "timeout"
    token.set
  else
    let nap := Nat.min left pause
    IO.sleep nap.toUInt32
    watchLimit host id token (left - nap) (Nat.min (pause * 2) 50)

partial def watchCancel (host : Host) (cancellations : IO.FS.Handle) : IO Unit := do
  let line ← cancellations.getLine
  if line.isEmpty then return
  let wanted := (String.join (line.splitOn "\n")).toNat?
  if wanted.isSome && (← host.running.get) == wanted then
    host.verdict.set "cancelled"
    (← host.token.get).set
  watchCancel host cancellations

def answer (host : Host) (line : String) : IO Json := do
  let begun ← IO.monoNanosNow
  let parsed := Json.parse line
  let json := parsed.toOption.getD .null
  let id := numberField? json "id"
  let token ← IO.CancelToken.new
  host.token.set token
  host.verdict.set ""
  host.running.set id
  if let some limit := numberField? json "max_ms" then
    discard <| IO.asTask (prio := .dedicated) (watchLimit host (id.getD 0) token limit 1)
  let outcome : Except Problem (List (String × Json)) ← match parsed with
    | .error error => pure (.error (request s!"not JSON: {error}"))
    | .ok _ => (((perform (textField json "op") json).run host).toBaseIO : BaseIO _)
  host.running.set none
  let verdict ← host.verdict.get
  let failed (kind text : String) : List (String × Json) := [("ok", Json.bool false), ("kind", Json.str kind), ("error", Json.str text)]
  let fields : List (String × Json) := match outcome with
    | .ok fields =>
      let interrupted := fields.any fun (key, value) => key == "stopped" && value == Json.str "interrupted"
      if verdict != "" && interrupted then failed verdict verdict else ("ok", Json.bool true) :: fields
    | .error problem =>
      -- A limit that struck after the work was done changes nothing; before, it is the reason.
      if verdict != "" then failed verdict verdict else failed problem.kind problem.text ++ problem.extra
  let micros := ((← IO.monoNanosNow) - begun) / 1000
  return object (fields ++ [
    ("id", match id with | some id => toJson id | none => .null), ("ms", .num ⟨micros, 3⟩), ("heap", toJson (← ownMemory))])

partial def serve (host : Host) (requests : IO.FS.Stream) (replies : IO.FS.Handle) : IO Unit := do
  let line ← requests.getLine
  if line.isEmpty then return
  unless line == "\n" do
    replies.putStr ((← answer host line).compress ++ "\n")
    replies.flush
  serve host requests replies

def descriptor (key : String) : IO System.FilePath := do
  match ← IO.getEnv key with
  | some number => return s!"/dev/fd/{number}"
  | none => throw (IO.userError s!"{key} is not set: this program is started by treewright")

unsafe def main : IO Unit := do
  let replies ← IO.FS.Handle.mk (← descriptor "TREEWRIGHT_REPLY_FD") .write
  let cancellations ← IO.FS.Handle.mk (← descriptor "TREEWRIGHT_CANCEL_FD") .read
  let host : Host := {
    states := ← IO.mkRef {}, environments := ← IO.mkRef {}, imported := ← IO.mkRef {}, next := ← IO.mkRef 1
    libraries := ← IO.mkRef {}, indices := ← IO.mkRef {}, surveyed := ← IO.mkRef none, hasRead := ← IO.mkRef false, original := ← IO.mkRef none
    ownRoots := (((← IO.getEnv "TREEWRIGHT_OWN_MODULES").getD "").splitOn ":").filter (· != "")
    listing := ← IO.mkRef ("", #[]), token := ← IO.mkRef (← IO.CancelToken.new), running := ← IO.mkRef none, verdict := ← IO.mkRef "" }
  discard <| IO.asTask (prio := .dedicated) (watchCancel host cancellations)
  replies.putStr "{\"ready\":true}\n"
  replies.flush
  serve host (← IO.getStdin) replies
  IO.Process.exit 0

end Treewright
