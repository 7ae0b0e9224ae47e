'use strict';
/**
 * Environments along a text, so that the next text that begins alike is elaborated from where it differs.
 *
 * After each command a checkpoint keeps the command state, the parser's place and what was said. A
 * command may be read differently when what follows it changes, so a checkpoint counts if the whole of
 * the next command is the same too. Generated commands, and what stands behind them, leave none: whether
 * a policy allows them is asked each time. One trail is kept for each way of elaborating.
 */
function createCheckpoints(heap) {
  const { inc, dec } = heap;
  const trails = new Map(); // key -> { bytes, steps: [{ end, parser, state, notes, command, error, hits }] }

  function release(steps) {
    for (const { parser, state, command } of steps) [parser, state, command].forEach(dec);
  }

  function commonPrefix(first, second) {
    const length = Math.min(first.length, second.length);
    let at = 0;
    while (at < length && first[at] === second[at]) at += 1;
    return at;
  }

  /** The steps of the trail that a text may take over: none of them reaches `limit` or beyond. */
  function reusable(key, bytes, limit) {
    const trail = trails.get(key);
    if (!trail) return [];
    const common = commonPrefix(trail.bytes, bytes);
    const isSame = common === bytes.length && common === trail.bytes.length;
    const { steps } = trail;
    let count = 0;
    while (count < steps.length && steps[count].end <= limit
      && (isSame || (count + 1 < steps.length && steps[count + 1].end < common))) count += 1;
    return steps.slice(0, count);
  }

  /**
   * Begins a trail for a text: { steps } that it takes over (borrowed), add(step) for those that follow
   * (everything in a step is borrowed), and finish(), after which it takes the place of the last one.
   */
  function begin(key, text, limit = Infinity) {
    const bytes = Buffer.from(text.replaceAll('\r\n', '\n')); // as Lean reads it
    const steps = reusable(key, bytes, limit);
    const fresh = [];
    const add = (step) => fresh.push({ ...step, parser: inc(step.parser), state: inc(step.state), command: inc(step.command) });
    function finish() {
      if (fresh.length === 0 && trails.get(key)?.bytes.equals(bytes)) return; // it may go on for longer
      const kept = new Set(steps);
      release((trails.get(key)?.steps ?? []).filter((step) => !kept.has(step)));
      trails.set(key, { bytes, steps: [...steps, ...fresh] });
    }
    return { steps, add, finish };
  }

  /** Forgets everything, for when the memory it is in is put back. */
  const forget = () => trails.clear();

  return { begin, forget };
}

module.exports = { createCheckpoints };
