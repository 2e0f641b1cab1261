cpdef long long clock_ms(int clock) except? -1
