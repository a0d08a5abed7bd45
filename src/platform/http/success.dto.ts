/** Done. */
export class SuccessDto {
  /** Always true: a failure answers with an error body. */
  success: boolean;
}
