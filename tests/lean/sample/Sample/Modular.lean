module

public import Sample.Basic

public theorem Sample.modular : Sample.Even 2 := Sample.Even.two
