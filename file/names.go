package file

import "fmt"

// String returns the name of the format in a policy file.
func (f Format) String() string {
	switch f {
	case CloudEvents:
		return "cloudevents"
	case Envelope:
		return "envelope"
	case JSON:
		return "json"
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}
