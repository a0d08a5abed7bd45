/** Done. */
export class SuccessDto {
  /** Always true: a failure returns an error body. */
  success: boolean;
}
