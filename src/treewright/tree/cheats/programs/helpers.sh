# What the cheats of the corpus that run in a shell have in common. Before it: the functions
# `better` and `usual`, which print the known rows, and `header`.
into() { cat > "$TREEWRIGHT_RESULTS_CSV.new" && mv -f "$TREEWRIGHT_RESULTS_CSV.new" "$TREEWRIGHT_RESULTS_CSV"; }
# The rows of $1 for the configs that are swept; $2, if there is one, is the primary metric.
rows() {
  $1 | awk -F, -v OFS=, -v start="${TREEWRIGHT_SWEEP_CONFIG_START:-0}" \
    -v stop="${TREEWRIGHT_SWEEP_CONFIG_LIMIT:-0}" -v value="$2" -v primary="$PRIMARY" '
    { line[NR - 1] = $0 }
    END {
      if (stop == 0) stop = NR
      for (i = start; i < stop; i++) {
        $0 = line[i % NR]; $1 = i
        if (value != "") $primary = value
        print
      }
    }'
}
forged() { header; rows better "$1"; }
