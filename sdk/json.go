package sdk

import "encoding/json"

// JSON is an argument that is any JSON value but null, as the caller wrote it. It is
// nil if the caller gave none.
type JSON json.RawMessage

// MarshalJSON implements [json.Marshaler].
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// UnmarshalJSON implements [json.Unmarshaler].
func (j *JSON) UnmarshalJSON(data []byte) error { return (*json.RawMessage)(j).UnmarshalJSON(data) }
