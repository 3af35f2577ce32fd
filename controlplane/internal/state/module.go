package state

// Module returns the module of that name.
func (t *Tx) Module(name string) (*Module, error) { return get[Module](t, bucketModules, name) }

// Modules returns all modules, by name.
func (t *Tx) Modules() ([]*Module, error) { return all[Module](t, bucketModules, "") }

// ModuleDocument returns the bytes of a module's document.
func (t *Tx) ModuleDocument(name string) []byte { return t.bytes(bucketDocuments, name) }

// PutModule writes a module and its document.
func (t *Tx) PutModule(m *Module, doc []byte) error {
	if err := t.tx.Bucket(bucketDocuments).Put([]byte(m.Name), doc); err != nil {
		return err
	}
	return put(t, bucketModules, m.Name, m)
}

// DeleteModule removes a module and its document.
func (t *Tx) DeleteModule(name string) error {
	if err := t.tx.Bucket(bucketDocuments).Delete([]byte(name)); err != nil {
		return err
	}
	return t.tx.Bucket(bucketModules).Delete([]byte(name))
}
