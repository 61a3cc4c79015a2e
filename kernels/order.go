package kernels

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Order is a kernel's function from steps to tiles, as python/build.py exports
// it from the kernel's source: whole numbers, names, and operations on two of
// them.
type Order struct {
	function  string
	constants map[string]int
	lets      []let
	tile      expression
}

type let struct {
	name  string
	value expression
}

// expression is a value given what names stand for; false is a division by
// zero.
type expression func(names map[string]int) (int, bool)

// Function is the name that the function has in Python.
func (o *Order) Function() string { return o.function }

// Tile is the tile that the kernel computes at a step. It is -1 if there is no
// such step, or if the function divides by zero there.
func (o *Order) Tile(step, tilesM, tilesN int) int {
	if step < 0 || tilesM < 1 || tilesN < 1 || step/tilesN >= tilesM {
		return -1
	}
	names := map[string]int{"step": step, "tiles_m": tilesM, "tiles_n": tilesN}
	maps.Copy(names, o.constants)
	ok := true
	for _, l := range o.lets {
		if names[l.name], ok = l.value(names); !ok {
			return -1
		}
	}
	tile, ok := o.tile(names)
	if !ok {
		return -1
	}
	return tile
}

// UnmarshalJSON implements json.Unmarshaler. It refuses what cannot be run.
func (o *Order) UnmarshalJSON(text []byte) error {
	var in struct {
		Function  string               `json:"function"`
		Constants map[string]int       `json:"constants"`
		Lets      [][2]json.RawMessage `json:"lets"`
		Tile      json.RawMessage      `json:"tile"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	known := map[string]bool{"step": true, "tiles_m": true, "tiles_n": true}
	for name := range in.Constants {
		known[name] = true
	}
	*o = Order{function: in.Function, constants: in.Constants}
	for _, l := range in.Lets {
		var name string
		if err := json.Unmarshal(l[0], &name); err != nil {
			return err
		}
		value, err := parseExpression(l[1], known)
		if err != nil {
			return fmt.Errorf("order %s, %s: %w", in.Function, name, err)
		}
		o.lets = append(o.lets, let{name, value})
		known[name] = true
	}
	tile, err := parseExpression(in.Tile, known)
	if err != nil {
		return fmt.Errorf("order %s: %w", in.Function, err)
	}
	o.tile = tile
	return nil
}

// operations are what an order may do. Division and remainder are Python's,
// whose operands are not negative here.
var operations = map[string]func(a, b int) int{
	"+":   func(a, b int) int { return a + b },
	"-":   func(a, b int) int { return a - b },
	"*":   func(a, b int) int { return a * b },
	"/":   func(a, b int) int { return a / b },
	"%":   func(a, b int) int { return a % b },
	"min": func(a, b int) int { return min(a, b) },
	"max": func(a, b int) int { return max(a, b) },
}

// parseExpression reads a number, a name, or an operation with two operands.
func parseExpression(text json.RawMessage, known map[string]bool) (expression, error) {
	var n *int
	if json.Unmarshal(text, &n) == nil && n != nil {
		return func(map[string]int) (int, bool) { return *n, true }, nil
	}
	var name *string
	if json.Unmarshal(text, &name) == nil && name != nil {
		if !known[*name] {
			return nil, fmt.Errorf("nothing is called %q", *name)
		}
		return func(names map[string]int) (int, bool) { return names[*name], true }, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil || len(parts) != 3 {
		return nil, fmt.Errorf("%s is no number, name or operation on two", text)
	}
	var op string
	if err := json.Unmarshal(parts[0], &op); err != nil || operations[op] == nil {
		return nil, fmt.Errorf("%s is no operation", parts[0])
	}
	a, err := parseExpression(parts[1], known)
	if err != nil {
		return nil, err
	}
	b, err := parseExpression(parts[2], known)
	if err != nil {
		return nil, err
	}
	do, divides := operations[op], op == "/" || op == "%"
	return func(names map[string]int) (int, bool) {
		x, xOK := a(names)
		y, yOK := b(names)
		if !xOK || !yOK || divides && y == 0 {
			return 0, false
		}
		return do(x, y), true
	}, nil
}
