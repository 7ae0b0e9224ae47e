import Sample.RingA
