package why

import (
	"fmt"

	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore"
)

// explainLeased returns the answer about a call under a leased key. A call under a leased key has no
// marker.
func (f *Facts) explainLeased(k *sqlstore.KnownKey) Answer {
	since := fmt.Sprintf("its leased key was first claimed at %s", moment(k.First))
	switch {
	case k.Ended == keystore.Complete:
		return Answer{StageApplied, Yes, fmt.Sprintf("It was applied: the call for it was completed; %s.", since), nil}
	case k.Ended == keystore.Fail && k.Started > k.Finished:
		says := "It is unknown whether it was applied: of %d claims of its leased key, %d have a known outcome, and the last call failed for good; %s. Ask the other side."
		return Answer{StageDiscarded, Unknown, fmt.Sprintf(says, k.Started, k.Finished, since), nil}
	case k.Ended == keystore.Fail:
		return Answer{StageDiscarded, No, fmt.Sprintf("It was not applied and never will be: the call for it failed for good; %s.", since), nil}
	case k.Ended == 0 && k.Until.After(f.Now):
		return Answer{StageClaimed, No, fmt.Sprintf("It is being processed: a process has its leased key until %s.", moment(k.Until)), nil}
	case k.Ended == keystore.Release && k.Started == k.Finished:
		return Answer{StageDue, No, fmt.Sprintf("It was not applied yet: no attempt had an effect, and its leased key is free; %s.", since), nil}
	}
	return Answer{StageUnknown, Unknown, fmt.Sprintf("It is unknown whether it was applied: of %d claims of its leased key, %d have a known outcome; %s. Ask the other side; the next process that claims the key gets the outcome as unknown.", k.Started, k.Finished, since), nil}
}
