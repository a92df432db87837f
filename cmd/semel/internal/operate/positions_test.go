package operate

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/kafka"
)

// partition returns the view of a partition whose log has the offsets 50 to 500.
func partition(standing kafka.Standing, store, group, target int64) PositionView {
	p := kafka.PartitionPosition{Topic: "orders", Partition: 3, Standing: standing, Store: store, Group: group, Start: 50, End: 500, Target: target}
	return PositionView{
		Topic: p.Topic, Partition: p.Partition, StoreAt: offsetOrNil(store), GroupAt: offsetOrNil(group), LogStart: p.Start, LogEnd: p.End,
		To: offsetOrNil(target), Missing: p.Missing(), Gone: p.Gone(), position: p,
	}
}

func TestWhichPartitionsAreSetAfterARestore(t *testing.T) {
	behind, ahead := partition(kafka.Behind, 100, 180, 100), partition(kafka.Ahead, 100, 180, 100)
	gone, nowhere := partition(kafka.Behind, 20, 180, 20), partition(kafka.Behind, -1, 180, -1)
	passed := partition(kafka.Behind, 20, 40, 20) // the log no longer has the offsets of the store and the group
	for name, c := range map[string]struct {
		setting Setting
		view    PositionView
		result  string // empty if Plan does not choose the partition
		to      int64
		says    string
	}{
		"I7_a_store_that_is_behind_is_waited_for":                       {Setting{}, behind, Would, 100, ""},
		"I7_what_a_person_has_set_stays":                                {Setting{}, ahead, "", 0, ""},
		"I7_unless_that_is_said":                                        {Setting{Ahead: true}, ahead, Would, 100, ""},
		"I7_records_that_have_left_the_log_are_counted_not_passed_over": {Setting{}, gone, Refused, 20, "30 records before offset 50 have left the log"},
		"I7_unless_their_loss_is_said":                                  {Setting{LogStart: true}, gone, Would, 50, ""},
		"I7_a_group_is_never_set_forward":                               {Setting{LogStart: true}, passed, Would, 40, ""},
		"I7_a_store_that_knows_nothing_says_so":                         {Setting{}, nowhere, Refused, -1, "--log-start"},
		"I7_and_is_filled_from_the_log_where_that_is_said":              {Setting{LogStart: true}, nowhere, Would, 50, ""},
		"I7_who_accepts_goes_on_where_the_group_is":                     {Setting{Accept: true}, gone, Would, 180, ""},
		"I7_a_level_partition_is_left_alone":                            {Setting{LogStart: true, Ahead: true}, partition(kafka.Level, 180, 180, 180), "", 0, ""},
		"I7_so_is_one_of_which_nothing_is_known":                        {Setting{LogStart: true, Ahead: true}, partition(kafka.Unknown, -1, 180, 60), "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.setting.Plan([]PositionView{c.view})
			if len(got) == 0 || c.result == "" {
				if len(got) != 0 || c.result != "" {
					t.Errorf("chosen is %+v", got)
				}
				return
			}
			v := got[0]
			to := int64(-1)
			if v.To != nil {
				to = *v.To
			}
			if v.Result != c.result || to != c.to || !strings.Contains(v.Error, c.says) {
				t.Errorf("the result is %s to %d (%s), want %s to %d, %q", v.Result, to, v.Error, c.result, c.to, c.says)
			}
			if v.OK() && !c.setting.Accept && v.position.Target != to {
				t.Errorf("it says %d and sets %d", to, v.position.Target)
			}
		})
	}
}

func TestTheRecordOfACommandNamesPartitions(t *testing.T) {
	t.Run("I7_each_with_its_figures_and_not_without_an_end", func(t *testing.T) {
		planned := Setting{}.Plan([]PositionView{partition(kafka.Behind, 100, 180, 100)})
		if got := Record(planned); got != "orders/3 store 100, group 180, to 100" {
			t.Errorf("it is %q", got)
		}
		var many []PositionView
		for range 3 * mostRecorded {
			many = append(many, planned[0])
		}
		if got := Record(many); strings.Count(got, "orders/3") != mostRecorded || !strings.HasSuffix(got, "…") {
			t.Errorf("it has %d partitions", strings.Count(got, "orders/3"))
		}
	})
}
