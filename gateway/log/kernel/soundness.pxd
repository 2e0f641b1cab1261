ctypedef unsigned int (*FastCrc)(unsigned int before, const unsigned char *source, unsigned long long size) noexcept nogil
