package why

import (
	"fmt"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// leased is the answer about a call under a leased key, of which there is no marker.
func (f *Facts) leased(k *sqlstore.KnownKey) Answer {
	since := fmt.Sprintf("its leased key was claimed first at %s", moment(k.First))
	switch {
	case k.Ended == store.KeyComplete:
		return Answer{StageApplied, Yes, fmt.Sprintf("It was applied: the call for it was completed; %s.", since), nil}
	case k.Ended == store.KeyFail && k.Started > k.Finished:
		says := "Nobody knows whether it was applied: of %d claims of its leased key the end of %d is known, and the last call failed for good; %s. Ask the other side."
		return Answer{StageDiscarded, Unknown, fmt.Sprintf(says, k.Started, k.Finished, since), nil}
	case k.Ended == store.KeyFail:
		return Answer{StageDiscarded, No, fmt.Sprintf("It was not applied and never will be: the call for it failed for good; %s.", since), nil}
	case k.Ended == 0 && k.Until.After(f.Now):
		return Answer{StageClaimed, No, fmt.Sprintf("It is being worked on now: a process has its leased key until %s.", moment(k.Until)), nil}
	case k.Ended == store.KeyRelease && k.Started == k.Finished:
		return Answer{StageDue, No, fmt.Sprintf("It was not applied yet: no attempt had an effect, and its leased key may be claimed; %s.", since), nil}
	}
	return Answer{StageUnknown, Unknown, fmt.Sprintf("Nobody knows whether it was applied: of %d claims of its leased key the end of %d is known; %s. Who claims it next is told so, and decides; ask the other side.", k.Started, k.Finished, since), nil}
}
