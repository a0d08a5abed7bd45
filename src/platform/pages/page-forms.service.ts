import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { BodyBudget } from '../http/body/body-budget.js';
import { readBody } from '../http/body/request-body.js';
import { requireFormToken } from './form-token.js';
import { PlainPageError, requireOwnPage } from './page.js';

/** How a page checks its forms; by default as {@link PageFormsService.read} says. */
export interface FormRules {
  /** Creates the error of a form of another origin or browser. */
  refusal?: () => Error;
  /** The handler calls `requireFormToken`. */
  leavesToken?: true;
}

/** Reads the forms of pages for people: the guard calls it for every page. */
@Injectable()
export class PageFormsService {
  constructor(
    private readonly env: Env,
    private readonly bodyBudget: BodyBudget,
  ) {}

  /**
   * The values of a form that a page of ours made for this browser.
   *
   * @throws PageError, and as `readBody`
   */
  async read(
    request: Request,
    response: Response,
    { refusal = foreignForm, leavesToken }: FormRules,
  ): Promise<URLSearchParams> {
    requireOwnPage(request, this.env, refusal);
    this.bodyBudget.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    if (!leavesToken) requireFormToken(this.env, request.headers.cookie, form, refusal);
    return form;
  }
}

function foreignForm(): PlainPageError {
  return new PlainPageError(
    'forbidden',
    'foreign_form',
    'This form is no longer valid',
    'You signed in or out since it was opened, in another tab perhaps; or it was not opened in this browser, or the browser has ' +
      'lost its cookies. Nothing was changed. Open the page again, and allow cookies for it.',
  );
}
