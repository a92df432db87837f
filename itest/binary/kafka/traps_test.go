//go:build unix

package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
)

// admin calls the function do with an admin client of the broker.
func (s fixture) admin(t *testing.T, do func(*kadm.Client) error) {
	t.Helper()
	client := s.client(t)
	defer client.Close()
	if err := do(kadm.NewClient(client)); err != nil {
		t.Fatal(err)
	}
}

func TestOffsetsThatMeanSomethingElseLater(t *testing.T) {
	s := newFixture(t, 3)
	s.policy(t, "p.yaml", "", s.consumer("billing", "payments", ""))
	s.produce(t, s.makePayments(1, 90)...)
	s.run(t, "p.yaml", 0)
	t.Run("trap_36_a_group_whose_offsets_are_gone_reads_everything_again_as_duplicates", func(t *testing.T) {
		s.admin(t, func(a *kadm.Client) error {
			_, err := a.DeleteGroup(t.Context(), s.name("billing"))
			return err
		})
		if counts, _ := s.run(t, "p.yaml", 0); counts["billing"] != (semel.Counts{Deliveries: 99, Duplicates: 99}) {
			t.Errorf("%+v", counts)
		}
		s.wantOnce(t, "billing", 90)
	})
	t.Run("trap_46_a_mirror_with_other_offsets_brings_duplicates_and_what_is_new", func(t *testing.T) {
		mirror := services.Topic(t, s.brokers, 2)
		var copies []*kgo.Record
		for _, r := range append(s.makePayments(50, 90), s.makePayments(91, 99)...) {
			r.Topic = mirror
			copies = append(copies, r)
		}
		s.produce(t, copies...)
		there := s
		there.topic = mirror
		there.policy(t, "mirror.yaml", "", s.consumer("billing", "payments", ""))
		counts, _ := s.run(t, "mirror.yaml", 0)
		if got := counts["billing"]; got.Applied != 9 || got.Deliveries != int64(len(copies)) {
			t.Errorf("%+v of %d", got, len(copies))
		}
		s.wantOnce(t, "billing", 99)
	})
	t.Run("trap_45_a_topic_that_was_deleted_and_made_again_brings_its_new_messages", func(t *testing.T) {
		s.admin(t, func(a *kadm.Client) error {
			_, err := a.DeleteTopic(t.Context(), s.topic)
			return err
		})
		waitUntil(t, "the topic is made again", func() bool {
			made := false
			s.admin(t, func(a *kadm.Client) error {
				anew, err := a.CreateTopic(t.Context(), 3, -1, nil, s.topic)
				if made = err == nil; made {
					services.AwaitTopic(t, s.brokers, s.topic, anew.ID)
				}
				return nil
			})
			return made
		})
		s.produce(t, s.makePayments(1, 9)...)
		s.produce(t, s.makePayments(101, 109)...)
		if counts, _ := s.run(t, "p.yaml", 0); counts["billing"] != (semel.Counts{Deliveries: 18, Applied: 9, Duplicates: 9}) {
			t.Errorf("%+v", counts)
		}
		s.wantOnce(t, "billing", 108)
	})
}
