/** The comparisons of the OCI format with libseccomp's numbers for them. */
export const COMPARISONS = {
  SCMP_CMP_NE: 1,
  SCMP_CMP_LT: 2,
  SCMP_CMP_LE: 3,
  SCMP_CMP_EQ: 4,
  SCMP_CMP_GE: 5,
  SCMP_CMP_GT: 6,
  SCMP_CMP_MASKED_EQ: 7,
} as const;

export type Comparison = keyof typeof COMPARISONS;

/** One comparison of one argument, on all 64 bits. For MASKED_EQ `value` is the mask and `valueTwo` what must be left. */
export interface Condition {
  index: number;
  comparison: Comparison;
  value: bigint;
  valueTwo: bigint;
}
