package hook

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWhoseFetchIsCancelledIsToldWhetherABrokerAnswers(t *testing.T) {
	t.Run("law_13_an_answer_grows_old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var h LastAnswer
			const silence = 5 * time.Second
			ended, end := context.WithCancel(t.Context())
			end()
			if err := h.Cancelled(ended, silence); !errors.Is(err, context.Canceled) {
				t.Errorf("before the first answer: %v", err)
			}
			h.OnBrokerE2E(kgo.BrokerMetadata{}, 1, kgo.BrokerE2E{})
			if err := h.Cancelled(ended, silence); err != nil {
				t.Errorf("after an answer: %v", err)
			}
			<-time.After(silence + 1)
			h.OnBrokerE2E(kgo.BrokerMetadata{}, 1, kgo.BrokerE2E{ReadErr: errors.New("cut")})
			if err := h.Cancelled(ended, silence); !errors.Is(err, context.Canceled) {
				t.Errorf("%v after the answer: %v", silence+1, err)
			}
		})
	})
}
