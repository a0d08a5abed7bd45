/**
 * HTML of the pages. The tag `html` escapes every value by default, so foreign text never becomes markup: only a value
 * created by `html` is not escaped. ESLint forbids strings that begin as markup elsewhere in `src`.
 *
 * `html\`<p>${name}</p>\`` → `<p>Ann &amp; Co</p>`. Attributes are written in double quotes: `<a href="${url}">`. The
 * tag does not check addresses: code that writes an `href` must do so.
 */

/** Markup that is safe to send. Only {@link html} creates it. */
export class Html {
  constructor(private readonly markup: string) {}

  toString(): string {
    return this.markup;
  }
}

/** A value in a template. Lists are joined; null, undefined and false are left out. */
export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function markupOf(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(markupOf).join('');
  // Bidirectional marks and control characters except tabs and line ends are replaced by blanks.
  return String(value)
    .replace(/[^\P{Cc}\n\t]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, ' ')
    .replace(/[&<>"']/g, (char) => ENTITIES[char]);
}

export function html(parts: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return new Html(parts.map((part, i) => part + markupOf(values[i])).join(''));
}
