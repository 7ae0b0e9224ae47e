import Helper.Pairs
