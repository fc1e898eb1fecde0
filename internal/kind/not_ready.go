package kind

// NotReadyError says that all of an update was done, and that what was waited
// for afterwards did not come: state and records are those of an update that
// succeeded, so that the next plan does not repeat it.
type NotReadyError struct{ Problems []Problem }

func (e *NotReadyError) Error() string { return e.Unwrap().Error() }

// Unwrap shows the problems to whoever reports them.
func (e *NotReadyError) Unwrap() error { return &ProblemError{Problems: e.Problems} }
