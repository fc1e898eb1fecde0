package kind

// Medium is what lies in a drive: a volume by pool and name, or a file of the
// host. The zero value is none.
type Medium struct{ Pool, Volume, File string }
