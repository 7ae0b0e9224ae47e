"""From numbers to decisions: results, pairs, scores, gate, beam. Pure, but for `kept_files`."""
