package options

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestOptionsOfTheClient(t *testing.T) {
	t.Run("I6_every_one_that_is_kept_is_known_to_the_client", func(t *testing.T) {
		c, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, k := range keptOptions() {
			if c.OptValues(k.option) == nil {
				t.Errorf("the client does not know %s", k.name)
			}
		}
	})
}
