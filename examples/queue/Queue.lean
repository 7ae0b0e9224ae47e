import Queue.Basic
import Queue.Laws
