package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/sdk/tool"
)

// encodeSettings encodes settings as the host does. Where the schema has a unit, it
// converts texts: sizes to bytes, durations to nanoseconds.
func encodeSettings(settings any, schema []byte) (json.RawMessage, error) {
	raw, err := encode(settings)
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	var s jsonschema.Schema
	known := json.Unmarshal(schema, &s) == nil
	if !known {
		return raw, nil // there is none, or checkDescribe reports it
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	if value, err = withoutUnits(value, &s, "settings"); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func withoutUnits(value any, s *jsonschema.Schema, path string) (_ any, err error) {
	switch v := value.(type) {
	case map[string]any:
		for name, part := range v {
			if property := s.Properties[name]; property != nil {
				if v[name], err = withoutUnits(part, property, path+"."+name); err != nil {
					return nil, err
				}
			}
		}
	case []any:
		for n, part := range v {
			if s.Items == nil {
				break
			}
			if v[n], err = withoutUnits(part, s.Items, fmt.Sprintf("%s[%d]", path, n)); err != nil {
				return nil, err
			}
		}
	case string:
		switch s.Extra["x-unit"] {
		case "bytes":
			size, err := tool.ParseByteSize(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			return int64(size), nil
		case "duration":
			d, err := time.ParseDuration(v)
			if err != nil {
				return nil, fmt.Errorf("%s: expected a duration such as \"30s\": %w", path, err)
			}
			return int64(d), nil
		}
	}
	return value, nil
}
