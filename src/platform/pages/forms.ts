/** Forms of pages, each at an address of its own under its page, and the page of a rejected form. */
import { DomainError, statusOf } from '../errors/domain-error.js';
import { FramedPage, type Redirect } from './frame.js';
import { html, type Html } from './html.js';

/** A rejected form, with the reason. */
export interface RejectedForm {
  /** The name of the form: its address, relative to the page. */
  name: string;
  /** The row of the form; '' without one. */
  id: string;
  text: string;
  /** The values that were sent. */
  values: URLSearchParams;
}

/** The part of a page's content that its forms need. */
export interface FormsView {
  token: Html;
  /** The address of the page, relative to the one that the browser shows. */
  address: string;
  rejected?: RejectedForm;
}

/**
 * The response to a form: the result of `work`, or the page of the form with the reason for its rejection.
 *
 * @param name the name of the form
 * @param show makes the page
 */
export async function respondToForm(
  name: string,
  values: URLSearchParams,
  work: () => Promise<FramedPage | Redirect>,
  show: (rejected: RejectedForm) => Promise<FramedPage>,
): Promise<FramedPage | Redirect> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    const rejected = { name, id: values.get('id') ?? '', text: error.message.replace(/\.$/, ''), values };
    const { content } = await show(rejected);
    return new FramedPage(content, statusOf[error.kind]);
  }
}

/** The beginning of a form, with its hidden fields and the reason for its rejection. @param id the row of the form */
export function openForm(view: FormsView, name: string, id = ''): Html {
  return html`<form method="post" action="${view.address}/${name}">${view.token}${id !== '' && html`<input type="hidden" name="id" value="${id}">`}
${isRejected(view, name, id) && html`<span class="fault" role="alert">${view.rejected?.text}.</span>`}`;
}

/** The value that was typed into a field of a rejected form. */
export function readTyped(view: FormsView, name: string, id: string, field: string): string {
  return (isRejected(view, name, id) && view.rejected?.values.get(field)) || '';
}

/** The attribute that moves the focus to the first field of a rejected form. */
export function focusOf(view: FormsView, name: string, id = ''): Html | false {
  return isRejected(view, name, id) && html` autofocus`;
}

function isRejected({ rejected }: FormsView, name: string, id: string): boolean {
  return rejected?.name === name && rejected.id === id;
}
