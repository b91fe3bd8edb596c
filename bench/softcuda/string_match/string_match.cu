// Where a word begins in a text: each thread compares at one position, letter by letter.
extern "C" __global__ void string_match(const char* text, int length, const char* word, int word_length,
                                        unsigned char* found, int* count) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= length) return;
  bool same = at + word_length <= length;
  for (int i = 0; same && i < word_length; ++i) same = text[at + i] == word[i];
  found[at] = same;
  if (same) atomicAdd(count, 1);
}
