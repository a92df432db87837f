package kafka

import (
	"fmt"
	"testing"
)

func TestEveryListedValuePrintsItsName(t *testing.T) {
	for want, value := range map[string]any{
		"records": Records, "cloudevents": CloudEvents, "Format(2)": CloudEvents + 1,
		"halt": Halt, "go_on": GoOn, "LostRecords(2)": GoOn + 1,
	} {
		if got := fmt.Sprint(value); got != want {
			t.Errorf("%s prints as %s", want, got)
		}
	}
}
