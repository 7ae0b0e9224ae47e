'use strict';
/** Why a candidate is not accepted: a stable reason and one line; `axioms` if it is about those. */
class Refusal extends Error {
  constructor(reason, detail, axioms = []) {
    super(detail);
    this.reason = reason;
    this.axioms = axioms;
  }
}

module.exports = { Refusal };
