"""Hahn & Rofin (2024), Why are Sensitive Functions Hard for Transformers?"""
