/** The fields of a rejected form in a page, as a screen reader finds them. */
export interface ShownFault {
  /** Name of the field that has the focus. */
  focused: string[];
  /** Names of the fields that are marked as wrong. */
  invalid: string[];
  /** The text of the error that describes the focused field. */
  described: string;
  /** The texts of all alerts of the page. */
  alerts: string[];
}

/** Reads what a page says of a rejected form. */
export function shownFault(text: string): ShownFault {
  const controls = text.match(/<(?:input|select|textarea)\b[^>]*>/g) ?? [];
  const attribute = (tag: string, name: string) => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? '';
  const textOf = (markup: string) =>
    markup
      .replace(/<[^>]*>/g, '')
      .replace(/\s+/g, ' ')
      .trim();
  const alerts = [...text.matchAll(/<(p|span|div)\b([^>]* role="alert"[^>]*)>([^]*?)<\/\1>/g)].map(
    ([, , tag, inner]) => ({ id: attribute(String(tag), 'id'), text: textOf(String(inner)) }),
  );
  const focused = controls.filter((tag) => / autofocus\b/.test(tag));
  const ids = focused.flatMap((tag) => attribute(tag, 'aria-describedby').split(' '));
  return {
    focused: focused.map((tag) => attribute(tag, 'name')),
    invalid: controls.filter((tag) => tag.includes(' aria-invalid="true"')).map((tag) => attribute(tag, 'name')),
    described: alerts.find(({ id }) => id !== '' && ids.includes(id))?.text ?? '',
    alerts: alerts.map((alert) => alert.text),
  };
}
