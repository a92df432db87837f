package policy

import (
	"testing"

	"github.com/semel-go/semel/consumer"
)

func TestDeadLettersAreParkedWhereASourceHasNone(t *testing.T) {
	t.Run("B9_G3_in_every_ending_and_in_a_copy", func(t *testing.T) {
		const letter, park = consumer.ActionDeadLetter, consumer.ActionPark
		was := Consumer{OnConflict: letter, OnBadIdentity: letter, OnPrecondition: consumer.ActionDiscard, OnFiltered: consumer.OnFilteredDeadLetter,
			Retry: consumer.RetryPolicy{OnExhausted: letter}, Version: &Version{Missing: letter}}
		c := was
		c.ParkDeadLetters()
		if c.OnConflict != park || c.OnBadIdentity != park || c.OnPrecondition != consumer.ActionDiscard || c.OnFiltered != consumer.OnFilteredPark || c.Retry.OnExhausted != park || c.Version.Missing != park {
			t.Errorf("%+v", c)
		}
		if was.Version.Missing != letter {
			t.Error("the policy itself was changed")
		}
	})
}
