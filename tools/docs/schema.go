package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A Schema is what `providers schema -json` says about a provider, as far as it is documented.
type Schema struct {
	Resources   map[string]Resource `json:"resource_schemas"`
	DataSources map[string]Resource `json:"data_source_schemas"`
}

// A Resource is a resource or a data source.
type Resource struct {
	Block Object `json:"block"`
}

// An Object has attributes: a resource, or a nested attribute.
type Object struct {
	Attributes  map[string]*Attribute `json:"attributes"`
	NestingMode string                `json:"nesting_mode"` // of a nested attribute: single, list, map
}

// An Attribute is one attribute of an object.
type Attribute struct {
	Type        json.RawMessage `json:"type"`        // cty's notation; absent if Nested is set
	Nested      *Object         `json:"nested_type"` // nil for a plain value
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Optional    bool            `json:"optional"`
	Computed    bool            `json:"computed"`
	Sensitive   bool            `json:"sensitive"`
	WriteOnly   bool            `json:"write_only"`
	Deprecated  bool            `json:"deprecated"`
}

// typeName is the type as the documentation prints it: "string", "list of objects".
func (a *Attribute) typeName() (string, error) {
	if a.Nested == nil {
		return typeName(a.Type)
	}
	switch a.Nested.NestingMode {
	case "single":
		return "object", nil
	case "list", "map", "set":
		return a.Nested.NestingMode + " of objects", nil
	}
	return "", fmt.Errorf("unknown nesting mode %q", a.Nested.NestingMode)
}

// typeName reads cty's notation: "string" or ["list", "string"].
func typeName(raw json.RawMessage) (string, error) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		switch name {
		case "string", "number":
			return name, nil
		case "bool":
			return "boolean", nil
		case "dynamic":
			return "value of any type", nil
		}
		return "", fmt.Errorf("unknown type %s", raw)
	}
	var pair []json.RawMessage
	if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
		return "", fmt.Errorf("unknown type %s", raw)
	}
	var kind string
	if err := json.Unmarshal(pair[0], &kind); err != nil {
		return "", fmt.Errorf("unknown type %s", raw)
	}
	if kind == "object" {
		return "object", nil
	}
	of, err := typeName(pair[1])
	return kind + " of " + of + "s", err
}

// readSchema finds the provider named by the end of its address in the output of
// `providers schema -json`, and returns the same output with the short name instead of the
// address, which is what tfplugindocs reads.
func readSchema(raw []byte, address, short string) (*Schema, []byte, error) {
	var all struct {
		Version   string                     `json:"format_version"`
		Providers map[string]json.RawMessage `json:"provider_schemas"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, fmt.Errorf("read the schema: %w", err)
	}
	for name, provider := range all.Providers {
		if !strings.HasSuffix(name, "/"+address) {
			continue
		}
		var schema Schema
		if err := json.Unmarshal(provider, &schema); err != nil {
			return nil, nil, fmt.Errorf("read the schema of %s: %w", name, err)
		}
		all.Providers = map[string]json.RawMessage{short: provider}
		renamed, err := json.Marshal(all)
		if err != nil {
			return nil, nil, fmt.Errorf("rename the provider: %w", err)
		}
		return &schema, renamed, nil
	}
	return nil, nil, errors.New("read the schema: it does not have " + address)
}
