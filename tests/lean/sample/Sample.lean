import Sample.Top
import Sample.Late
