package recipe

// inputs are the files that the contents come from, once each is known. Declarations
// are none of them: they are read whole before anything is written.
func (r *Recipe) inputs() []string {
	var all []string
	for _, f := range r.Files {
		all = append(all, f.Path)
	}
	for _, p := range r.Packages {
		all = append(all, p.Path, p.Signature)
	}
	for _, i := range r.Images {
		if file := i.from.File(); file != "" {
			all = append(all, file)
		}
	}
	return all
}
