package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// MarshalJSON writes a known or null value as plain JSON. Numbers keep every
// digit. Unknown values cannot be written: they are an error.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.kind {
	case Null:
		return []byte("null"), nil
	case Unknown:
		return nil, fmt.Errorf("an unknown value cannot be stored")
	case Bool:
		return json.Marshal(v.b)
	case Number:
		return []byte(v.digits()), nil
	case String:
		return json.Marshal(v.s)
	case List:
		return json.Marshal(v.list)
	}
	return json.Marshal(v.obj)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var raw any
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more than one JSON value")
	}
	var err error
	*v, err = fromJSON(raw)
	return err
}

func fromJSON(raw any) (Value, error) {
	switch raw := raw.(type) {
	case nil:
		return NullValue, nil
	case bool:
		return BoolValue(raw), nil
	case json.Number:
		return ParseNumber(raw.String())
	case string:
		return StringValue(raw), nil
	case []any:
		elems := make([]Value, len(raw))
		for i, e := range raw {
			var err error
			if elems[i], err = fromJSON(e); err != nil {
				return NullValue, err
			}
		}
		return ListValue(elems), nil
	case map[string]any:
		attrs := make(map[string]Value, len(raw))
		for name, e := range raw {
			var err error
			if attrs[name], err = fromJSON(e); err != nil {
				return NullValue, err
			}
		}
		return ObjectValue(attrs), nil
	}
	return NullValue, fmt.Errorf("unexpected JSON value %T", raw)
}
