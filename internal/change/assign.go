package change

import "math"

// assign pairs rows with columns so that the sum of the values of the pairs is
// as large as it can be. It returns the column of each row, -1 for a row
// that has none; a value of 0 is no pair. (The closest pair first is not
// enough: it may take from another row the only one that it is like.)
func assign(value [][]float64) []int {
	rows, cols := len(value), len(value[0])
	if rows > cols {
		to := make([]int, rows)
		for i := range to {
			to[i] = -1
		}
		for j, i := range assign(transposed(value)) {
			if i >= 0 {
				to[i] = j
			}
		}
		return to
	}
	// The Hungarian method with potentials, row by row. Column and row 0 are
	// the way in.
	rowOf, u, v := make([]int, cols+1), make([]float64, rows+1), make([]float64, cols+1)
	for i := 1; i <= rows; i++ {
		augment(value, i, rowOf, u, v)
	}
	to := make([]int, rows)
	for j := 1; j <= cols; j++ {
		if i := rowOf[j]; i > 0 {
			to[i-1] = j - 1
			if value[i-1][j-1] == 0 {
				to[i-1] = -1
			}
		}
	}
	return to
}

// augment finds a column for one more row along the cheapest way that lets
// rows before it move to others.
func augment(value [][]float64, row int, rowOf []int, u, v []float64) {
	least, from, seen := make([]float64, len(v)), make([]int, len(v)), make([]bool, len(v))
	for j := range least {
		least[j] = math.Inf(1)
	}
	rowOf[0] = row
	j := 0
	for rowOf[j] != 0 {
		seen[j] = true
		i, next, step := rowOf[j], 0, math.Inf(1)
		for k := 1; k < len(v); k++ {
			if seen[k] {
				continue
			}
			if cost := -value[i-1][k-1] - u[i] - v[k]; cost < least[k] {
				least[k], from[k] = cost, j
			}
			if least[k] < step {
				next, step = k, least[k]
			}
		}
		for k := range v {
			if seen[k] {
				u[rowOf[k]] += step
				v[k] -= step
			} else {
				least[k] -= step
			}
		}
		j = next
	}
	for j != 0 {
		rowOf[j] = rowOf[from[j]]
		j = from[j]
	}
}

func transposed(value [][]float64) [][]float64 {
	out := make([][]float64, len(value[0]))
	for j := range out {
		out[j] = make([]float64, len(value))
		for i := range value {
			out[j][i] = value[i][j]
		}
	}
	return out
}
