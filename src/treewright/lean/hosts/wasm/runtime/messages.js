'use strict';
/** Lean's messages and exceptions as plain objects. */

function createMessages(heap, { call, unwrap }, names) {
  /** Takes a MessageData; returns its text. */
  function text(data) {
    const result = call('l_Lean_MessageData_toString', data);
    if (heap.tag(result) === heap.TAG.string) return heap.takeString(result);
    return heap.takeString(unwrap(result));
  }

  /** The text of a borrowed Lean.Exception. */
  const ofException = (exception) => text(call('l_Lean_Exception_toMessageData', heap.inc(exception)));

  /** Whether a borrowed Lean.Exception is an internal one (abort, interrupt, postpone). */
  const isInternal = (exception) => heap.tag(exception) === 1;

  /** A borrowed MessageLog as a list. */
  function read(log) {
    const list = call('l_Lean_MessageLog_toList', heap.inc(log));
    const result = heap.readList(list).map((message) => {
      const json = call('l_Lean_Message_toJson', heap.inc(message));
      const parsed = JSON.parse(heap.takeString(call('l_Lean_Json_compress', json)));
      return {
        severity: parsed.severity,
        text: parsed.data,
        line: parsed.pos.line,
        column: parsed.pos.column,
        end_line: parsed.endPos ? parsed.endPos.line : null,
        end_column: parsed.endPos ? parsed.endPos.column : null,
        kind: parsed.kind === '[anonymous]' ? '' : parsed.kind,
      };
    });
    heap.dec(list);
    return result;
  }

  const empty = heap.global('l_Lean_MessageLog_empty');
  return { text, ofException, isInternal, read, empty };
}

module.exports = { createMessages };
