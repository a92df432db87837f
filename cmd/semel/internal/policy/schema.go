package policy

// schema is a JSON Schema (draft 2020-12).
type schema map[string]any

func (o object[T]) schema() schema      { return nil }
func (o named[T]) schema() schema       { return nil }
func (o list[T]) schema() schema        { return nil }
func (word) schema() schema             { return nil }
func (choice[V]) schema() schema        { return nil }
func (flag) schema() schema             { return nil }
func (count) schema() schema            { return nil }
func (span) schema() schema             { return nil }
func (size) schema() schema             { return nil }
func (fingerprintShape) schema() schema { return nil }
func (retentionShape) schema() schema   { return nil }
func (paramsShape) schema() schema      { return nil }
