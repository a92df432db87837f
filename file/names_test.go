package file

import (
	"fmt"
	"testing"
)

func TestEveryFormatPrintsItsName(t *testing.T) {
	for want, value := range map[string]Format{"cloudevents": CloudEvents, "envelope": Envelope, "json": JSON, "Format(3)": JSON + 1} {
		if got := fmt.Sprint(value); got != want {
			t.Errorf("%s prints as %s", want, got)
		}
	}
}
