package kafka

import "fmt"

// String is the format's word in a policy file.
func (f Format) String() string {
	switch f {
	case Records:
		return "records"
	case CloudEvents:
		return "cloudevents"
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// String is its word in a policy file.
func (l LostRecords) String() string {
	switch l {
	case Halt:
		return "halt"
	case GoOn:
		return "go_on"
	}
	return fmt.Sprintf("LostRecords(%d)", uint8(l))
}
